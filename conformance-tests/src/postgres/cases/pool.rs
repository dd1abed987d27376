use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use advisory_core::{Error, LockKey, LockManager, Stage, postgres::Value};

use crate::{
    postgres::{PostgresEnv, options},
    sync::{DEADLINE, Gate},
};

const BOUND: Duration = Duration::from_secs(1);

pub(super) async fn busy_pool_keeps_no_lock(env: &PostgresEnv) {
    const CONNECTIONS: usize = 5;

    let (locks, tap) = env.tapped_manager(CONNECTIONS).await;
    let done = Arc::new(Gate::default());
    let others: Vec<_> = (0..CONNECTIONS - 1)
        .map(|_| {
            let (tap, done) = (tap.clone(), Arc::clone(&done));
            env.spawn(async move {
                while !done.is_open() {
                    tap.borrow("SELECT pg_sleep(0.002)").await.unwrap();
                }
            })
        })
        .collect();

    let lock = locks.named("imports:run");
    for _ in 0..100 {
        let guard = lock.lock().await.unwrap();
        env.holder(lock.key()).await;
        // An unlock on another connection would find nothing there, and be a loss.
        guard.release().await.unwrap();
        assert_eq!(env.held().await, []);
    }
    done.open();
    for other in others {
        other.await;
    }
    assert!(env.sessions().await.len() <= CONNECTIONS);
}

pub(super) async fn one_connection_serves_many_locks(env: &PostgresEnv) {
    let locks = env.manager_with_pool_of(1).await;
    let lock = locks.named("imports:run");
    lock.with(async || ()).await.unwrap();
    let first = lock.with(async || env.holder(lock.key()).await).await;
    let first = first.unwrap();
    for key in 0..20_i64 {
        let lock = locks.keyed(key);
        let session = lock.with(async || env.holder(lock.key()).await).await;
        assert_eq!(session.unwrap(), first);
    }
}

pub(super) async fn dropped_guard_is_not_pooled(env: &PostgresEnv) {
    let locks = env.manager_with_pool_of(2).await;
    for key in 0..6_i64 {
        let guard = locks.keyed(key).lock().await.unwrap();
        let session = env.holder(guard.key()).await;
        drop(guard);
        env.until_free_within(BOUND, key.into()).await;
        env.until_ended(session).await;
    }
    assert_eq!(env.held().await, []);
}

/// Somebody else gave the lock up on the guard's own session; nobody can say for how long.
pub(super) async fn tampered_connection_is_not_pooled(env: &PostgresEnv) {
    env.expect_in_log("WARNING:  you don't own a lock of type ExclusiveLock");
    let (locks, tap) = env.tapped_manager(2).await;
    for key in [LockKey::BigInt(42), LockKey::Pair(4, 2)] {
        let guard = locks.keyed(key).lock().await.unwrap();
        let session = env.holder(key).await;
        let arguments = key.to_string();
        let arguments = arguments.trim_matches(['(', ')']);
        tap.before_next(format!("SELECT pg_advisory_unlock({arguments})"));

        let released = guard.release().await;
        assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");
        assert_eq!(tap.answers().pop(), Some(Value::Text("t".into())));
        env.until_ended(session).await;
        locks.keyed(key).with(async || ()).await.unwrap();
    }
}

pub(super) async fn dead_connection_is_replaced(env: &PostgresEnv) {
    let lock = env.manager_with_pool_of(1).await.named("imports:run");
    for _ in 0..3 {
        let session = lock.with(async || env.holder(lock.key()).await).await;
        // It dies in the pool, where nobody is told.
        env.terminate(session.unwrap()).await;
        lock.with(async || ()).await.unwrap();
    }
}

pub(super) async fn handed_in_stays_usable(env: &PostgresEnv) {
    let (locks, tap) = env.tapped_manager(2).await;
    locks.named("imports:run").with(async || ()).await.unwrap();
    locks.close().await.unwrap();
    let rows = tap.borrow("SELECT 1").await.unwrap();
    assert_eq!(rows, [[Value::Text("1".into())]]);
}

/// Who holds a lock still needs a connection for the work that the lock is for.
pub(super) async fn lends_to_sections(env: &PostgresEnv) {
    const CONNECTIONS: usize = 4;

    let options = options();
    let (locks, tap) = env.tapped_manager_with(CONNECTIONS, options).await;
    let most_inside = Arc::new(Gate::default());
    let inside = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..i64::try_from(CONNECTIONS).expect("a small number"))
        .map(|key| {
            let (lock, tap) = (locks.keyed(key), tap.clone());
            let (most_inside, inside) = (Arc::clone(&most_inside), Arc::clone(&inside));
            env.spawn(async move {
                lock.with(async || {
                    // As many as will fit hold their locks before the first of them asks.
                    if inside.fetch_add(1, SeqCst) + 2 == CONNECTIONS {
                        most_inside.open();
                    }
                    most_inside.passed().await;
                    tap.borrow("SELECT 1").await
                })
                .await
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(env.held().await, []);
}

/// A pool of one has none to spare; that is told in the time that the pool itself allows.
pub(super) async fn of_one_tells_that_it_is_exhausted(env: &PostgresEnv) {
    let (locks, tap) = env.tapped_manager_with(1, options()).await;
    let lock = locks.named("imports:run");
    let started = Instant::now();
    let query = lock.with(async || tap.borrow("SELECT 1").await).await;
    let query = query.unwrap();
    assert!(
        matches!(query, Err(Error::PoolExhausted { .. })),
        "{query:?}"
    );
    assert!(started.elapsed() < DEADLINE);
    tap.borrow("SELECT 1").await.unwrap();
    lock.with(async || ()).await.unwrap();
}

/// Locks take three quarters of a pool that others use as well, and no more.
pub(super) async fn keeps_connections_for_others(env: &PostgresEnv) {
    let (locks, tap) = env.tapped_manager_with(4, options()).await;
    let mut guards = Vec::new();
    for key in 0..3_i64 {
        guards.push(locks.keyed(key).lock().await.unwrap());
    }
    let fourth = locks.keyed(3);
    match fourth.lock_timeout(Duration::from_millis(100)).await {
        Err(Error::Timeout { stage, .. }) => assert_eq!(stage, Stage::Connection),
        other => panic!("the fourth is not for locks: {other:?}"),
    }
    tap.borrow("SELECT 1").await.unwrap();
    guards
        .pop()
        .expect("there are three")
        .release()
        .await
        .unwrap();
    guards.push(fourth.lock().await.unwrap());
    for guard in guards {
        guard.release().await.unwrap();
    }
    assert_eq!(env.held().await, []);
}

/// Nobody waits without end for a place that no lock leaves.
pub(super) async fn exhausted_by_locks_ends_in_time(env: &PostgresEnv) {
    let options = options().session_within(Duration::from_secs(3));
    let (locks, _) = env.tapped_manager_with(1, options).await;
    let guard = locks.named("imports:run").lock().await.unwrap();
    assert_exhausted(&locks).await;
    guard.release().await.unwrap();
    locks.named("other").with(async || ()).await.unwrap();
}

/// Nor for a connection that the pool's other users do not give back.
pub(super) async fn exhausted_by_others_ends_in_time(env: &PostgresEnv) {
    let (locks, tap) = env.tapped_manager(1).await;
    let client = env.client().await;
    client.run("SELECT pg_advisory_lock(1)").await;
    let busy = tap.clone();
    let other = env.spawn(async move { busy.borrow("SELECT pg_advisory_xact_lock(1)").await });
    env.until_waiters(1.into(), 1).await;
    assert_exhausted(&locks).await;
    client.run("SELECT pg_advisory_unlock(1)").await;
    other.await.unwrap();
    locks.named("other").with(async || ()).await.unwrap();
}

/// Fails unless every way to acquire tells that there is no connection, within the pool's limit. A
/// try does, too: it has not looked at the lock.
async fn assert_exhausted(locks: &LockManager) {
    let lock = locks.named("other");
    let started = Instant::now();
    let (locked, tried, ran, session) = futures::join!(
        lock.lock(),
        lock.try_lock(),
        lock.with(async || ()),
        locks.session(),
    );
    assert!(started.elapsed() < DEADLINE);
    for refused in [locked.map(drop), tried.map(drop), ran, session.map(drop)] {
        assert!(
            matches!(refused, Err(Error::PoolExhausted { .. })),
            "{refused:?}"
        );
    }
}

/// The connection of a session goes back when its last handle or guard is released.
pub(super) async fn session_goes_back(env: &PostgresEnv) {
    let locks = env.manager_with_pool_of(1).await;
    let lock = locks.named("imports:run");
    let first = lock.with(async || env.holder(lock.key()).await).await;
    let first = first.unwrap();
    for _ in 0..3 {
        let session = locks.session().await.unwrap();
        let guard = session.lock(&lock).await.unwrap();
        assert_eq!(env.holder(lock.key()).await, first);
        session.release().await.unwrap();
        guard.release().await.unwrap();
    }
    // What is dropped is closed.
    let session = locks.session().await.unwrap();
    session.lock(&lock).await.unwrap().release().await.unwrap();
    drop(session);
    env.until_ended(first).await;
    lock.with(async || assert_ne!(env.holder(lock.key()).await, first))
        .await
        .unwrap();
}
