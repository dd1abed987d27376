//! The server goes, and comes back.
//!
//! A crash here is one of the server, not of its machine: all of its processes go at once, and the
//! next start recovers from the write-ahead log. The fixture runs with `fsync = off`, so what the
//! server has written is with the operating system, which lives on.

use std::time::Duration;

use super::{CLOSED_WITHIN, LossEnv, NAME, running::Running, within};
use crate::{
    postgres::Server,
    sync::{DEADLINE, pause},
};

pub(super) async fn in_good_order(env: &LossEnv) {
    ends_what_is_held(env, Server::stop).await;
}

pub(super) async fn after_a_crash(env: &LossEnv) {
    ends_what_is_held(env, Server::crash).await;
}

/// What was known of the server is asked anew: its sessions have other ids, and it may end them when
/// they idle.
pub(super) async fn makes_another_server(env: &LossEnv) {
    let server = Server::start(&[]);
    let locks = env.manager(&server.url()).await;
    let guard = locks.named(NAME).lock().await.unwrap();
    server.set("idle_session_timeout", "1s").await;
    server.restart();
    within(CLOSED_WITHIN, guard.lost()).await;

    let guard = locks.named(NAME).lock_timeout(DEADLINE).await.unwrap();
    let rival = env.manager(&server.url()).await.named(NAME);
    let holders = rival.holders().await.unwrap();
    assert!(holders[0].this_process, "{holders:?}");
    pause(Duration::from_secs(3)).await;
    guard.release().await.unwrap();
}

async fn ends_what_is_held(env: &LossEnv, go: fn(&Server)) {
    let server = Server::start(&[]);
    let locks = env.manager(&server.url()).await;
    let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    for _ in 0..2 {
        // The token is the last thing that the server was asked for.
        let section = Running::start(env, locks.named(NAME)).await;
        let token = section.token();
        go(&server);
        section.stopped_within(CLOSED_WITHIN).await;

        server.start_again();
        let client = server.client().await;
        assert_eq!(client.value(held).await, "0");
        let guard = locks.named(NAME).lock_timeout(DEADLINE).await.unwrap();
        assert_eq!(client.value(held).await, "1");
        assert!(guard.fencing_token().await.unwrap() > token);
        guard.release().await.unwrap();
    }
}
