//! `idle_session_timeout`, which ends a session that does nothing but hold a lock.

use std::time::{Duration, Instant};

use super::{CLOSED_WITHIN, LossEnv, NAME, running::Running};
use crate::{
    outcome::lost,
    postgres::Server,
    sync::{DEADLINE, pause},
};

const SETTING: &str = "idle_session_timeout";

/// Three times what a session may idle.
const LONG: Duration = Duration::from_secs(3);

/// The library knows of it, and switches it off for as long as it holds something; also for a guard
/// that nobody watches, whose session is not probed.
pub(super) async fn is_switched_off(env: &LossEnv) {
    let server = Server::start(&[(SETTING, "1s")]);
    let locks = env.manager(&server.url()).await;
    let guard = locks.named("other").lock().await.unwrap();
    let section = Running::start(env, locks.named(NAME)).await;
    pause(LONG).await;
    assert_eq!(held(&server).await, "2");
    section.end().await.unwrap();
    guard.release().await.unwrap();
}

/// An administrator sets it when the library has looked already. A driver whose sessions are probed
/// more often than that keeps them; with another one the section is stopped. It never goes on
/// without its lock.
pub(super) async fn set_later_is_told(env: &LossEnv) {
    let server = Server::start(&[]);
    let locks = env.manager(&server.url()).await;
    locks.named(NAME).with(async || ()).await.unwrap();
    set(&server).await;
    let section = Running::start(env, locks.named(NAME)).await;
    let started = Instant::now();
    while started.elapsed() < LONG {
        if held(&server).await == "0" {
            return section.stopped_within(CLOSED_WITHIN).await;
        }
        pause(Duration::from_millis(10)).await;
    }
    section.end().await.unwrap();
}

pub(super) async fn set_later_ends_a_guard_that_nobody_watches(env: &LossEnv) {
    let server = Server::start(&[]);
    let locks = env.manager(&server.url()).await;
    locks.named(NAME).with(async || ()).await.unwrap();
    set(&server).await;
    let guard = locks.named(NAME).lock().await.unwrap();
    let started = Instant::now();
    while held(&server).await != "0" {
        assert!(started.elapsed() <= DEADLINE, "it is held");
        pause(Duration::from_millis(10)).await;
    }
    lost(guard.release().await);
}

/// Sets it, and returns when it is in force for new sessions.
async fn set(server: &Server) {
    server.set(SETTING, "1s").await;
    let show = format!("SHOW {SETTING}");
    while server.client().await.value(&show).await != "1s" {
        pause(Duration::from_millis(10)).await;
    }
}

/// How many advisory locks are held. By a client of its own, since that may not idle, either.
async fn held(server: &Server) -> String {
    let sql = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted";
    server.client().await.value(sql).await
}
