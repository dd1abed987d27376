use std::time::{Duration, Instant};

use advisory_core::{Error, LockManager, postgres::Value};
use futures::future::{Either, select};

use super::{idle, inspected::Inspected, repeats, role::Role, victims_of_a_cycle};
use crate::{
    postgres::{PostgresEnv, RawClient, Tap, options},
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

/// Many short waits must not add up to a long one.
pub(super) async fn lets_index_builds_through_a_crowd(env: &PostgresEnv) {
    const WAITERS: usize = 20;

    let client = env.client().await;
    client.run("CREATE TABLE t (x int)").await;
    let guard = env.manager().await.named("migrate").lock().await.unwrap();
    let locks = env.manager_with_pool_of(WAITERS).await;
    let lock = locks.named("migrate");
    let waiting = [(); WAITERS].map(|()| {
        let (locks, lock) = (locks.clone(), lock.clone());
        // Waiters without a session of their own would queue up here, not on the server.
        env.spawn(async move {
            let session = locks.session().await?;
            session.lock(&lock).await?.release().await?;
            session.release().await
        })
    });
    env.until_waiters(lock.key(), WAITERS).await;

    let started = Instant::now();
    client.run("CREATE INDEX CONCURRENTLY ON t (x)").await;
    assert!(started.elapsed() < Duration::from_secs(3));
    guard.release().await.unwrap();
    for waiter in waiting {
        waiter.await.unwrap();
    }
    let built = "SELECT count(*) FROM pg_index WHERE indisvalid AND indrelid = 't'::regclass";
    assert_eq!(client.value(built).await, "1");
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
    outlast_timeouts(env, env.manager().await).await;
}

/// A role's settings come before those of its database.
pub(super) async fn outlasts_timeouts_of_the_role(env: &PostgresEnv) {
    let role = Role::create(env).await;
    role.set(env, "lock_timeout = '300ms'").await;
    role.set(env, "statement_timeout = '300ms'").await;
    outlast_timeouts(env, env.manager_at(role.url()).await).await;
    role.remove(env).await;
}

async fn outlast_timeouts(env: &PostgresEnv, locks: LockManager) {
    let (lock, outer) = (locks.named("imports:run"), locks.named("outer"));
    let guard = lock.lock().await.unwrap();
    let (bare, nested) = (lock.clone(), lock.clone());
    let waiting = [
        env.spawn(async move { bare.lock_timeout(DEADLINE).await.map(drop) }),
        env.spawn(async move {
            let nested = outer.with(async || nested.lock_timeout(DEADLINE).await);
            nested.await?.map(drop)
        }),
    ];
    env.until_waiters(lock.key(), 2).await;
    pause(Duration::from_secs(1)).await;
    guard.release().await.unwrap();
    for waiter in waiting {
        waiter.await.unwrap();
    }
}

/// The server looks for them later than a turn lasts otherwise.
pub(super) async fn finds_deadlocks_of_a_patient_server(env: &PostgresEnv) {
    env.database().set("deadlock_timeout = '5500ms'").await;
    let locks = env.manager_with_pool_of(2).await;
    assert_eq!(victims_of_a_cycle(env, &locks).await, 1);
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

/// A guard that is held for long keeps nothing open but its session, whether or not it was waited
/// for. In pinned mode there is a transaction, which keeps nothing either, and is not timed out.
pub(super) async fn holds_without_a_transaction(env: &PostgresEnv) {
    let timeout = "idle_in_transaction_session_timeout = '500ms'";
    env.database().set(timeout).await;
    let locks = env.manager().await;
    let (lock, free) = (locks.named("imports:run"), locks.named("free"));
    let rival = env.manager().await.named("imports:run");
    let first = rival.lock().await.unwrap();
    let waiting = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().await.unwrap() }
    });
    env.until_waiters(lock.key(), 1).await;
    first.release().await.unwrap();
    let guards = [waiting.await, free.lock().await.unwrap()];

    let held = env.held().await;
    pause(Duration::from_millis(1500)).await;
    assert_eq!(env.held().await, held);
    for guard in guards {
        let session = env.holder(guard.key()).await;
        let seen = format!(
            "SELECT state || coalesce(backend_xmin::text, '') || coalesce(backend_xid::text, '')
             FROM pg_stat_activity WHERE pid = {session}"
        );
        assert_eq!(env.client().await.value(&seen).await, idle());
        guard.release().await.unwrap();
    }
}

/// An outer lock survives any number of nested waits that are given up.
pub(super) async fn cancelled_leaves_outer_locks(env: &PostgresEnv) {
    // Slices are short then; what is abandoned is in the way until the end of one.
    env.database().set("deadlock_timeout = '100ms'").await;
    let locks = env.manager_with_pool_of(2).await;
    let (outer, inner) = (locks.named("outer"), locks.named("inner"));
    let rival = env.manager().await.named("inner").lock().await.unwrap();
    let holder = env.holder(inner.key()).await;
    for _ in 0..repeats(15) {
        outer
            .with(async || {
                let session = env.holder(outer.key()).await;
                let limit = Box::pin(pause(Duration::from_millis(50)));
                match select(Box::pin(inner.with(async || ())), limit).await {
                    Either::Left((entered, _)) => panic!("it is held: {entered:?}"),
                    Either::Right(((), wait)) => drop(wait),
                }
                assert_eq!(env.holder(outer.key()).await, session);
            })
            .await
            .unwrap();
        assert_eq!(env.holder(inner.key()).await, holder);
    }
    env.until_waiters(inner.key(), 0).await;
    rival.release().await.unwrap();
    env.until_empty().await;
}

/// What a session holds makes its waits no dearer than they need to be.
pub(super) async fn with_thousands_of_locks_held(env: &PostgresEnv) {
    const LOCKS: u32 = 10_000;
    const ROUNDS: u32 = 20;
    const PATIENCE: Duration = Duration::from_millis(1);

    let database = Inspected::shared().await.database().await;
    let options = options();
    let (locks, tap) = env.tapped_manager_of(&database, 1, options).await;
    let busy = locks.keyed((7, 1));
    let rival = env.manager_at(database.url()).await.keyed((7, 1));
    let rival = rival.lock().await.unwrap();
    let session = locks.session().await.unwrap();
    tap.before_next(format!(
        "SELECT pg_advisory_lock(k) FROM generate_series(1, {LOCKS}) AS k"
    ));
    let guard = session.lock(&locks.keyed((7, 2))).await.unwrap();

    let started = Instant::now();
    for _ in 0..ROUNDS {
        assert!(session.try_lock(&busy).await.unwrap().is_none());
    }
    let tried = started.elapsed() / ROUNDS;
    let started = Instant::now();
    for _ in 0..ROUNDS {
        let late = session.lock_timeout(&busy, PATIENCE).await;
        assert!(matches!(late, Err(Error::Timeout { .. })), "{late:?}");
    }
    let waited = (started.elapsed() / ROUNDS).saturating_sub(PATIENCE);
    println!(
        "a try takes {tried:?}, and a wait {waited:?} more than its timeout, {:.1} times as much",
        waited.as_secs_f64() / tried.as_secs_f64()
    );

    let held = format!(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = {}",
        session.id().expect("it has answered")
    );
    let held = database.client().await.value(&held).await;
    assert_eq!(held, (LOCKS + 1).to_string());
    drop((guard, session));
    rival.release().await.unwrap();
    database.remove().await;
}
