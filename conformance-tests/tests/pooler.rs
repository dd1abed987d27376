//! The pooler before a throw-away server: that it pools as it should, and that it goes away.
#![cfg(feature = "postgres")]

use std::{net::TcpStream, panic::AssertUnwindSafe};

use advisory_conformance_tests::postgres::{PoolMode, Pooler, RawClient, Server};
use futures::{FutureExt, executor::block_on};

const PID: &str = "SELECT pg_backend_pid()";

#[test]
fn sessions_are_kept_apart_and_transactions_are_not() {
    let server = Server::start(&[]);
    for (mode, apart) in [(PoolMode::Session, true), (PoolMode::Transaction, false)] {
        let pooler = Pooler::start(&server, mode, &[]);
        block_on(async {
            let database = server.database().await;
            let url = pooler.url_of(&database);
            let clients = [
                RawClient::connect(&url).await,
                RawClient::connect(&url).await,
            ];
            let pids = [clients[0].value(PID).await, clients[1].value(PID).await];
            assert_eq!(pids[0] != pids[1], apart, "{mode:?}");
            let here = "SELECT current_database()";
            assert_eq!(clients[0].value(here).await, database.name());
        });
        assert!(pooler.log().contains("process up"));
    }
}

#[test]
fn settings_are_those_asked_for_and_roles_are_those_of_the_server() {
    let server = Server::start(&[]);
    let small = ("default_pool_size", "1");
    let pooler = Pooler::start(
        &server,
        PoolMode::Session,
        &[small, ("query_wait_timeout", "1")],
    );
    block_on(async {
        let database = server.database().await;
        server.client().await.run("CREATE ROLE visitor LOGIN").await;
        let url = pooler.url_of(&database).replace("postgres@", "visitor@");
        let visitor = RawClient::connect(&url).await;
        assert_eq!(visitor.value("SELECT current_user").await, "visitor");
        let second = async { RawClient::connect(&url).await.value(PID).await };
        let second = AssertUnwindSafe(second).catch_unwind().await;
        assert!(second.is_err(), "the pool has one connection");
    });
    assert!(pooler.log().contains("query_wait_timeout"));
}

#[test]
fn drop_stops_it() {
    let server = Server::start(&[]);
    let pooler = Pooler::start(&server, PoolMode::Session, &[]);
    let database = block_on(server.database());
    let url = pooler.url_of(&database);
    let address = url.split(['@', '/']).nth(3).unwrap().to_owned();
    TcpStream::connect(&address).unwrap();
    drop(pooler);
    assert!(TcpStream::connect(&address).is_err());
}
