use std::time::{Duration, Instant};

use advisory_core::{Error, LockMode, Result, Stage};

use crate::{Env, sync::DEADLINE};

const SHORT: Duration = Duration::from_millis(200);

pub(super) async fn in_time_is_a_lock(env: &Env) {
    let lock = env.manager().await.named("db:migrate");
    let guard = lock.lock().await.unwrap();
    let waiting = env.spawn({
        let lock = lock.clone();
        async move { lock.with_timeout(DEADLINE, async || "done").await }
    });
    env.until_waiters(lock.key(), 1).await;
    guard.release().await.unwrap();
    assert_eq!(waiting.await.unwrap(), "done");
    assert_eq!(env.held().await, []);
}

pub(super) async fn late_is_an_error(env: &Env) {
    let lock = env.manager().await.named("db:migrate");
    let guard = lock.lock().await.unwrap();
    let holder = env.holder(lock.key()).await;

    let started = Instant::now();
    let late = lock.lock_timeout(SHORT).await;
    let took = started.elapsed();
    assert!(took >= SHORT && took < DEADLINE, "{took:?}");
    assert_timed_out(&late, SHORT);

    // The lock stays with its holder, and nobody is left in the queue.
    env.until_waiters(lock.key(), 0).await;
    assert_eq!(env.holder(lock.key()).await, holder);
    guard.release().await.unwrap();
    env.until_empty().await;
}

pub(super) async fn late_skips_the_section(env: &Env) {
    let lock = env.manager().await.named("db:migrate");
    let guard = lock.lock().await.unwrap();
    let mut ran = false;
    let late = lock.with_timeout(SHORT, async || ran = true).await;
    assert_timed_out(&late, SHORT);
    assert!(!ran);
    guard.release().await.unwrap();
}

pub(super) async fn late_keeps_outer_locks(env: &Env) {
    let locks = env.manager().await;
    let (outer, inner) = (locks.named("outer"), locks.named("inner"));
    let guard = env.manager().await.named("inner").lock().await.unwrap();
    outer
        .with(async || {
            let holder = env.holder(outer.key()).await;
            let late = inner.with_timeout(SHORT, async || ()).await;
            assert_timed_out(&late, SHORT);
            assert_eq!(env.holder(outer.key()).await, holder);
            env.until_waiters(inner.key(), 0).await;
        })
        .await
        .unwrap();
    guard.release().await.unwrap();
    env.until_empty().await;
}

pub(super) async fn late_names_the_holder(env: &Env) {
    let lock = env.manager().await.named("db:migrate");
    let guard = lock.lock().await.unwrap();
    let session = env.holder(lock.key()).await;

    let late = env.manager().await.named("db:migrate");
    match late.lock_timeout(SHORT).await {
        Err(Error::Timeout { holders, .. }) => {
            let named: Vec<_> = holders
                .iter()
                .map(|h| (h.session.number(), h.mode))
                .collect();
            assert_eq!(named, [(session, LockMode::Exclusive)]);
        }
        other => panic!("should have timed out: {other:?}"),
    }
    guard.release().await.unwrap();
}

pub(super) async fn zero_takes_a_free_lock(env: &Env) {
    let lock = env.manager().await.named("db:migrate");
    let guard = lock.lock_timeout(Duration::ZERO).await.unwrap();
    env.holder(lock.key()).await;
    guard.release().await.unwrap();
    let ran = lock.with_timeout(Duration::ZERO, async || "ran").await;
    assert_eq!(ran.unwrap(), "ran");
}

pub(super) async fn zero_gives_up_at_once(env: &Env) {
    let lock = env.manager().await.named("db:migrate");
    let guard = lock.lock().await.unwrap();
    let started = Instant::now();
    assert_timed_out(&lock.lock_timeout(Duration::ZERO).await, Duration::ZERO);
    assert!(started.elapsed() < DEADLINE);
    env.until_waiters(lock.key(), 0).await;
    guard.release().await.unwrap();
}

pub(super) async fn longest_duration_waits(env: &Env) {
    let lock = env.manager().await.named("db:migrate");
    let guard = lock.lock().await.unwrap();
    let waiting = env.spawn({
        let lock = lock.clone();
        async move { lock.lock_timeout(Duration::MAX).await }
    });
    env.until_waiters(lock.key(), 1).await;
    guard.release().await.unwrap();
    waiting.await.unwrap().release().await.unwrap();
}

pub(super) async fn is_no_obstacle_to_the_next_try(env: &Env) {
    let locks = env.manager_with_pool_of(2).await;
    let lock = locks.named("db:migrate");
    for _ in 0..3 {
        let guard = lock.lock().await.unwrap();
        assert_timed_out(&lock.lock_timeout(SHORT).await, SHORT);
        guard.release().await.unwrap();
        lock.with(async || ()).await.unwrap();
    }
    env.until_empty().await;
}

fn assert_timed_out<T: std::fmt::Debug>(result: &Result<T>, least: Duration) {
    match result {
        Err(Error::Timeout { waited, stage, .. }) => {
            assert_eq!(*stage, Stage::Lock);
            assert!(*waited >= least, "{waited:?} is less than {least:?}");
        }
        other => panic!("should have timed out: {other:?}"),
    }
}
