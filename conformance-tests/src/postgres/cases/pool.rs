use std::{sync::Arc, time::Duration};

use advisory_core::{Error, LockKey, postgres::Value};

use crate::{postgres::PostgresEnv, sync::Gate};

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
