//! A role that may not run a DO block waits all the same, by plain statements.

use std::time::{Duration, Instant};

use advisory_core::Error;

use super::{role::Role, victims_of_a_cycle};
use crate::{postgres::PostgresEnv, sync::DEADLINE};

const SHORT: Duration = Duration::from_millis(200);

/// A role without the language; superusers always have it.
async fn role(env: &PostgresEnv) -> Role {
    let role = Role::create(env).await;
    let revoke = "REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC";
    let client = env.client().await;
    client.run(revoke).await;
    // Nothing on the server can catch what ends a slice of a plain statement.
    env.expect_in_log("ERROR:  canceling statement due to lock timeout");
    let may = format!(
        "SELECT has_language_privilege('{}', 'plpgsql', 'USAGE')",
        role.name()
    );
    assert_eq!(client.value(&may).await, "f");
    role
}

pub(super) async fn waits_end_with_the_lock(env: &PostgresEnv) {
    let role = role(env).await;
    let locks = env.manager_at(role.url()).await;
    for lock in [locks.named("imports:run"), locks.keyed((7, -7))] {
        for lock in [lock.clone(), lock.shared()] {
            let rival = env.manager().await.keyed(lock.key()).lock().await;
            let rival = rival.unwrap();
            let waiting = env.spawn({
                let lock = lock.clone();
                async move { lock.lock().await }
            });
            env.until_waiters(lock.key(), 1).await;
            rival.release().await.unwrap();
            let guard = waiting.await.unwrap();
            assert_eq!(env.holders(lock.key()).await[0].1, lock.mode());
            guard.release().await.unwrap();
            assert_eq!(env.held().await, []);
        }
    }
    role.remove(env).await;
}

pub(super) async fn waits_end_by_timeout(env: &PostgresEnv) {
    let role = role(env).await;
    let locks = env.manager_at(role.url()).await;
    let (outer, lock) = (locks.named("outer"), locks.named("imports:run"));
    let rival = env.manager().await.named("imports:run").lock().await;
    let rival = rival.unwrap();
    let session = env.holder(lock.key()).await;
    // Longer than a slice, so that more than one fails on the way.
    for timeout in [SHORT, 4 * SHORT] {
        let late = outer.with(async || {
            let started = Instant::now();
            let late = lock.lock_timeout(timeout).await;
            assert!(started.elapsed() < DEADLINE);
            env.holder(outer.key()).await;
            env.until_waiters(lock.key(), 0).await;
            late
        });
        match late.await.unwrap() {
            Err(Error::Timeout {
                waited, holders, ..
            }) => {
                assert!(waited >= timeout, "{waited:?}");
                assert_eq!(holders[0].session.number(), session);
            }
            other => panic!("should have timed out: {other:?}"),
        }
    }
    rival.release().await.unwrap();
    lock.with(async || ()).await.unwrap();
    assert_eq!(env.held().await, []);
    role.remove(env).await;
}

pub(super) async fn deadlocks_are_found(env: &PostgresEnv) {
    env.database().set("deadlock_timeout = '100ms'").await;
    env.expect_in_log("ERROR:  deadlock detected");
    let role = role(env).await;
    let locks = env.manager_at(role.url()).await;
    assert_eq!(victims_of_a_cycle(env, &locks).await, 1);
    assert_eq!(env.held().await, []);
    role.remove(env).await;
}
