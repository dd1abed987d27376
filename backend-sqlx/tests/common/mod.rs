//! What the tests share: a server, a pool on it, and a raw connection to look at it.
#![allow(dead_code, reason = "each test file uses a part")]

use std::{
    future::Future,
    thread,
    time::{Duration, Instant},
};

use advisory_backend_sqlx::{SqlxConnection, SqlxPool};
use advisory_conformance_tests::postgres::Server;
use advisory_core::postgres::{Connection, Param, Pool, Value};
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

/// Past a pooler, if there is one: how connections end is seen in the server's own sessions.
pub(crate) fn url() -> String {
    Server::shared().direct_url()
}

pub(crate) fn options() -> PgConnectOptions {
    url().parse().unwrap()
}

/// A lazy pool of `size` connections; inside a runtime only.
pub(crate) fn pool(size: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(size)
        .acquire_timeout(Duration::from_secs(20))
        .connect_lazy_with(options())
}

pub(crate) async fn checkout(pool: &PgPool) -> SqlxConnection {
    SqlxPool::from_pool(pool.clone()).checkout().await.unwrap()
}

pub(crate) async fn pid(connection: &mut SqlxConnection) -> i32 {
    let rows = connection.query("SELECT pg_catalog.pg_backend_pid()", &[]);
    match rows.await.unwrap()[..] {
        [ref row] => match row[..] {
            [Value::Int4(pid)] => pid,
            _ => panic!("{row:?}"),
        },
        _ => panic!("one row"),
    }
}

pub(crate) async fn lock(connection: &mut SqlxConnection, key: i64) {
    let sql = "SELECT pg_catalog.pg_try_advisory_lock($1)";
    let rows = connection.query(sql, &[Param::Int8(key)]).await.unwrap();
    assert_eq!(rows, [[Value::Bool(true)]]);
}

pub(crate) fn kill(pid: i32) {
    assert_eq!(
        ask(&format!("SELECT pg_terminate_backend({pid}, 10000)")),
        "t"
    );
}

pub(crate) fn is_gone(pid: i32) -> bool {
    let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
    ask(&sql) == "0"
}

pub(crate) fn is_busy(pid: i32) -> bool {
    let sql = format!("SELECT state = 'active' FROM pg_stat_activity WHERE pid = {pid}");
    ask(&sql) == "t"
}

/// Asks over a connection that has nothing to do with sqlx, and needs no runtime.
fn ask(sql: &str) -> String {
    smol::block_on(async { Server::shared().client().await.value(sql).await })
}

pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "never {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

/// Runs a future on one of the runtimes that sqlx knows.
pub(crate) trait Runtime {
    fn block_on<F: Future>(&self, future: F) -> F::Output;
}

impl Runtime for tokio::runtime::Runtime {
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.block_on(future)
    }
}

pub(crate) struct Smol;

impl Runtime for Smol {
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        smol::block_on(future)
    }
}

pub(crate) struct AsyncStd;

impl Runtime for AsyncStd {
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        async_std::task::block_on(future)
    }
}
