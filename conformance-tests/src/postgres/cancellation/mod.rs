//! What is left behind by those who go away in the middle: nothing.
//!
//! A proxy stops a connection at each message in turn, so that every moment in the life of a lock
//! is one to be cancelled at, to lose the server at, or to meet its silence at.

use std::time::{Duration, Instant};

use advisory_core::{LockKey, LockManager};

use super::{Point, PoolMode, ProxiedEnv, proxied::BOUND};
use crate::{
    list::list,
    sync::{DEADLINE, pause},
};

list! {
    ($)
    /// Generates a test for each case of cancellation on PostgreSQL:
    /// `cancellation_suite!(Postgres::new(driver), runtime)`. As [`suite!`](crate::suite)
    /// otherwise.
    cancellation_suite calls run_proxied_case with ProxiedEnv;

    acquiring {
        while_it_connects
        while_it_looks_at_the_server
        while_it_looks_for_a_pooler
        while_it_asks
        once_it_is_granted
        once_the_wait_is_granted
        while_the_connection_is_set_up
        waits_on_a_connection_that_is_set_up
        while_it_waits
        while_it_asks_who_holds
        many_times
    }
    releasing {
        cancelled_frees_the_lock
        cancelled_after_the_section
        cut_is_reported
        inside_a_dropped_section
        while_the_manager_closes
    }
    nested {
        waits_keep_the_outer_lock
        grants_are_given_back
        tries_are_given_back
        releases_keep_the_outer_lock
    }
    silence {
        ends_a_checkout_in_time
        ends_a_try_in_time
        ends_a_wait_in_time
        ends_a_nested_wait_in_time
        ends_a_lock_without_timeout
        ends_a_release_in_time
        ends_a_close_in_time
        ends_a_close_of_a_pool_in_time
        ends_an_impatient_close_in_time
        while_a_connection_goes_back
    }
    outside {
        a_waiter_is_dropped
        a_section_is_dropped
        a_release_is_dropped
        a_session_and_its_guards_are_dropped
        a_wait_on_an_idle_session_is_dropped
        a_manager_is_dropped
    }
    shutdown {
        a_guard_is_dropped_later
        a_guard_is_dropped_meanwhile
        one_guard_of_a_session_is_dropped_later
        a_release_comes_too_late
        tasks_are_dropped
        a_manager_is_dropped_later
        a_manager_is_dropped_meanwhile
    }
}

/// What is in the statements that are stopped at.
const TRY_LOCK: &str = "SELECT pg_catalog.pg_try_advisory_lock";
const UNLOCK: &str = "SELECT pg_catalog.pg_advisory_unlock";
const COMMIT: &str = "COMMIT";
const WAIT: &str = "DO $advisory$";
const HOLDERS: &str = "pg_stat_get_activity(l.pid)";
const SET_UP: &str = "tcp_keepalives_idle";
const FACTS: [&str; 2] = ["pg_catalog.version()", "server_version_num"];
/// A part of each statement that looks for a pooler, on either of the two connections.
const POOLER: [&str; 8] = [
    "SELECT pg_catalog.pg_backend_pid()",
    "'advisory.mark', 'left'",
    "BEGIN",
    "ROLLBACK",
    "'advisory.mark', true",
    "VALUES (pg_catalog.pg_try_advisory_lock",
    "VALUES (pg_catalog.pg_advisory_unlock",
    "VALUES (EXISTS",
];

/// The longest a wait goes on that nobody waits for any more.
const SLICE: Duration = Duration::from_millis(400);

/// Every moment in the life of a prepared statement. In pinned mode none is prepared.
fn moments(sql: &'static str) -> impl Iterator<Item = Point> {
    let prepared = !PoolMode::pins_all();
    let preparing = [Point::prepare(sql), Point::prepare(sql).unanswered()];
    let preparing = preparing.into_iter().filter(move |_| prepared);
    preparing.chain(moments_of_batch(sql))
}

/// Every moment in the life of a batch.
fn moments_of_batch(sql: &'static str) -> [Point; 2] {
    [Point::execute(sql), Point::execute(sql).unanswered()]
}

/// Cancels an attempt when it has come to the point.
async fn cancelled_at<T: Send + 'static>(
    env: &ProxiedEnv,
    point: Point,
    attempt: impl Future<Output = T> + Send + 'static,
) {
    let stop = env.proxy().stop(point);
    let attempt = env.spawn(attempt);
    stop.reached().await;
    assert!(
        attempt.cancel().await.is_none(),
        "it ended before {point:?}"
    );
    // What was held back reaches a server whose client has gone.
}

/// Fails unless nothing is left of what the manager has done, in the space and in its pool of so
/// many connections.
async fn assert_nothing_is_left(env: &ProxiedEnv, locks: &LockManager, connections: usize) {
    let started = Instant::now();
    loop {
        let asked = started.elapsed();
        let held = env.held().await;
        if held.is_empty() {
            break;
        }
        assert!(asked <= BOUND + SLICE, "still held: {held:?}");
        pause(Duration::from_millis(5)).await;
    }
    assert_pool_is_whole(env, locks, connections).await;
    assert_eq!(env.held().await, []);
    assert_eq!(env.proxy().cancel_requests(), 0);
}

/// Fails unless all connections of the pool can be used at once.
async fn assert_pool_is_whole(env: &ProxiedEnv, locks: &LockManager, connections: usize) {
    let mut guards = Vec::new();
    for at in 0..connections {
        let lock = locks.named(format!("one of the pool:{at}"));
        let guard = lock.lock_timeout(DEADLINE).await;
        guards.push(guard.unwrap_or_else(|error| panic!("connection {at}: {error}")));
    }
    for guard in guards {
        guard.release().await.unwrap();
    }
    // One that was given up may still be on its way out.
    let started = Instant::now();
    while env.proxy().clients() > connections {
        assert!(started.elapsed() <= BOUND, "the pool has grown");
        pause(Duration::from_millis(5)).await;
    }
}

/// Returns when no client has a connection open any more, which must not take longer than this.
async fn until_disconnected(limit: Duration, env: &ProxiedEnv) {
    let started = Instant::now();
    while env.proxy().clients() > 0 {
        assert!(started.elapsed() <= limit, "a connection is kept");
        pause(Duration::from_millis(5)).await;
    }
}

/// Returns when somebody holds the key; who.
async fn until_held(env: &ProxiedEnv, key: LockKey) -> i64 {
    let started = Instant::now();
    loop {
        if let [(session, _)] = env.holders(key).await[..] {
            return session;
        }
        assert!(started.elapsed() <= DEADLINE, "nobody holds {key}");
        pause(Duration::from_millis(5)).await;
    }
}
