//! How many statements the server is sent, by its own account.

use std::time::Duration;

use advisory_core::Error;

use super::{inspected::Inspected, repeats};
use crate::postgres::{PostgresEnv, options};

pub(super) async fn uncontended_section_is_two(env: &PostgresEnv) {
    const SECTIONS: usize = 5;

    let server = Inspected::shared().await;
    let database = server.database().await;
    // One connection, so that none is new: that may still be on its way back which was warmed up.
    let options = options();
    let (locks, _) = env.tapped_manager_of(&database, 1, options).await;
    locks.named("warm").with(async || ()).await.unwrap();
    let before = Inspected::statements(&database);
    assert!(before >= 2, "they are counted");

    for tenant in 0..SECTIONS {
        let lock = locks.named(format!("tenant:{tenant}"));
        assert_eq!(lock.try_with(async || ()).await.unwrap(), Some(()));
    }
    // A pool that forgets what was set on a connection has it set each time.
    let each = if env.pools_reset_settings() { 3 } else { 2 };
    assert_eq!(Inspected::statements(&database) - before, each * SECTIONS);
    database.remove().await;
}

pub(super) async fn reentry_is_none(env: &PostgresEnv) {
    let server = Inspected::shared().await;
    let database = server.database().await;
    let locks = env.manager_at(database.url()).await;
    let lock = locks.named("tenant:7");
    let counted = lock
        .with(async || {
            let before = Inspected::statements(&database);
            for _ in 0..3 {
                lock.with(async || ()).await.unwrap();
                assert_eq!(lock.try_with(async || ()).await.unwrap(), Some(()));
                lock.lock().await.unwrap().release().await.unwrap();
            }
            Inspected::statements(&database) - before
        })
        .await;
    assert_eq!(counted.unwrap(), 0);
    database.remove().await;
}

/// A miss that this manager can know of costs nothing, either.
pub(super) async fn local_miss_is_none(env: &PostgresEnv) {
    let server = Inspected::shared().await;
    let database = server.database().await;
    let lock = env.manager_at(database.url()).await.named("tenant:7");
    let guard = lock.lock().await.unwrap();
    let before = Inspected::statements(&database);
    for _ in 0..3 {
        assert!(lock.try_lock().await.unwrap().is_none());
        assert!(lock.clone().shared().try_lock().await.unwrap().is_none());
    }
    assert_eq!(Inspected::statements(&database), before);
    guard.release().await.unwrap();
    database.remove().await;
}

/// Keys and timeouts are no part of a statement's text, not even where they cannot be parameters.
pub(super) async fn many_keys_are_few_kinds(env: &PostgresEnv) {
    let server = Inspected::shared().await;
    let database = server.database().await;
    let keys = i64::try_from(repeats(50)).expect("a small number");
    let holder = database.client().await;
    let hold = format!("SELECT pg_advisory_lock(k) FROM generate_series(1, {keys}) AS k");
    holder.run(&hold).await;

    let locks = env.manager_at(database.url()).await;
    for key in 1..=keys {
        let timeout = Duration::from_millis(1 + key.unsigned_abs() % 5);
        let late = locks.keyed(key).lock_timeout(timeout).await;
        assert!(matches!(late, Err(Error::Timeout { .. })), "{late:?}");
    }
    holder.run("SELECT pg_advisory_unlock_all()").await;
    for key in 1..=keys {
        locks.keyed(key).with(async || ()).await.unwrap();
    }
    let kinds = server.kinds(&database).await;
    assert!((5..20).contains(&kinds.len()), "{kinds:#?}");
    database.remove().await;
}
