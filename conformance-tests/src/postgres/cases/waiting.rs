use std::time::{Duration, Instant};

use advisory_core::{Error, LockManager, postgres::Value};

use crate::{
    postgres::{PostgresEnv, RawClient, Tap},
    sync::{DEADLINE, pause},
};

/// An index build waits for every older snapshot; a wait for a lock must not keep one.
pub(super) async fn lets_index_builds_through(env: &PostgresEnv) {
    let (holder, tap) = env.tapped_manager(2).await;
    let client = env.client().await;
    let waiter = env.manager().await;
    build_beside_a_waiter(env, &client, (holder, tap), waiter).await;
}

/// With less time than a slice takes by default, the server would call it a deadlock.
pub(super) async fn lets_index_builds_through_in_a_hurry(env: &PostgresEnv) {
    env.database().set("deadlock_timeout = '100ms'").await;
    lets_index_builds_through(env).await;
}

async fn build_beside_a_waiter(
    env: &PostgresEnv,
    client: &RawClient,
    (holder, tap): (LockManager, Tap),
    waiter: LockManager,
) {
    client.run("CREATE TABLE t (x int)").await;
    for holding_another in [false, true] {
        let guard = holder.named("migrate").lock().await.unwrap();
        let waiting = env.spawn({
            let (lock, other) = (waiter.named("migrate"), waiter.named("other"));
            async move {
                if holding_another {
                    other.with(async || lock.with(async || ()).await).await?
                } else {
                    lock.with(async || ()).await
                }
            }
        });
        // Long enough for slices of any length to be tried.
        pause(Duration::from_millis(500)).await;

        let started = Instant::now();
        client.run("CREATE INDEX CONCURRENTLY ON t (x)").await;
        assert!(started.elapsed() < Duration::from_secs(3));

        let started = Instant::now();
        tap.before_next("CREATE INDEX CONCURRENTLY ON t (x)");
        let released = guard.release().await;
        let waiter = if holding_another {
            "holds another"
        } else {
            "is bare"
        };
        assert!(released.is_ok(), "the waiter {waiter}: {released:?}");
        assert!(started.elapsed() < Duration::from_secs(3));
        waiting.await.unwrap();
    }
    let broken = client.value("SELECT count(*) FROM pg_index WHERE NOT indisvalid");
    assert_eq!(broken.await, "0");
}

pub(super) async fn outlasts_timeouts_of_the_database(env: &PostgresEnv) {
    env.database().set("lock_timeout = '300ms'").await;
    env.database().set("statement_timeout = '200ms'").await;
    let lock = env.manager().await.named("imports:run");
    let guard = lock.lock().await.unwrap();
    let waiting = env.spawn({
        let lock = lock.clone();
        async move { lock.lock_timeout(DEADLINE).await }
    });
    pause(Duration::from_secs(1)).await;
    guard.release().await.unwrap();
    waiting.await.unwrap().release().await.unwrap();
}

/// What a wait changes on its connection ends with the wait.
pub(super) async fn leaves_settings_alone(env: &PostgresEnv) {
    const SETTINGS: &str = "SELECT name || '=' || setting FROM pg_settings
        WHERE name IN ('lock_timeout', 'statement_timeout', 'search_path') ORDER BY name";

    env.database().set("lock_timeout = '300ms'").await;
    env.database().set("statement_timeout = '2s'").await;
    let (locks, tap) = env.tapped_manager(1).await;
    let before = tap.borrow(SETTINGS).await.unwrap();
    assert_eq!(before[0], [Value::Text("lock_timeout=300".into())]);

    let lock = locks.named("busy");
    let rival = env.manager().await.named("busy").lock().await.unwrap();
    let late = lock.lock_timeout(Duration::from_secs(1)).await;
    assert!(matches!(late, Err(Error::Timeout { .. })), "{late:?}");
    rival.release().await.unwrap();
    lock.with(async || ()).await.unwrap();
    assert_eq!(tap.borrow(SETTINGS).await.unwrap(), before);
}

/// A guard that is held for long keeps nothing open but its session.
pub(super) async fn holds_without_a_transaction(env: &PostgresEnv) {
    let timeout = "idle_in_transaction_session_timeout = '200ms'";
    env.database().set(timeout).await;
    let lock = env.manager().await.named("imports:run");
    let rival = env.manager().await.named("imports:run");
    let first = rival.lock().await.unwrap();
    let waiting = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().await.unwrap() }
    });
    env.until_waiters(lock.key(), 1).await;
    first.release().await.unwrap();
    let guard = waiting.await;

    pause(Duration::from_secs(1)).await;
    let session = env.holder(lock.key()).await;
    let seen = format!(
        "SELECT state || coalesce(backend_xmin::text, '') || coalesce(backend_xid::text, '')
         FROM pg_stat_activity WHERE pid = {session}"
    );
    assert_eq!(env.client().await.value(&seen).await, "idle");
    guard.release().await.unwrap();
}
