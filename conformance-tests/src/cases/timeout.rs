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

pub(super) async fn longest_durations_are_no_overflow(env: &Env) {
    let locks = env.manager().await;
    let lock = locks.named("db:migrate");
    for timeout in [
        Duration::MAX,
        Duration::from_secs(u64::MAX),
        Duration::from_secs(u64::MAX / 2),
        Duration::from_secs(1 << 40),
        Duration::from_millis(u64::MAX),
    ] {
        lock.with_timeout(timeout, async || ()).await.unwrap();
        let session = locks.session().await.unwrap();
        let guard = session.lock_timeout(&lock, timeout).await.unwrap();
        env.holder(lock.key()).await;
        guard.release().await.unwrap();
        session.release().await.unwrap();
        // One that is waited for, too.
        let guard = lock.lock().await.unwrap();
        let waiting = env.spawn({
            let lock = lock.clone();
            async move { lock.with_timeout(timeout, async || ()).await }
        });
        env.until_waiters(lock.key(), 1).await;
        guard.release().await.unwrap();
        waiting.await.unwrap();
    }
    locks.close_timeout(Duration::MAX).await.unwrap();
}

pub(super) async fn bounds_the_checkout(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let (held, other) = (locks.named("held"), locks.named("other"));
    let guard = held.lock().await.unwrap();
    let started = Instant::now();
    let late = other.lock_timeout(SHORT).await;
    let took = started.elapsed();
    assert!(took >= SHORT && took < DEADLINE, "{took:?}");
    match late {
        Err(Error::Timeout { stage, waited, .. }) => {
            assert_eq!(stage, Stage::Connection);
            assert!(waited >= SHORT, "{waited:?}");
        }
        other => panic!("there is no connection: {other:?}"),
    }
    // Who gave up is not lent one any more.
    guard.release().await.unwrap();
    other.with_timeout(DEADLINE, async || ()).await.unwrap();
    assert_eq!(env.held().await, []);
}

/// A section that takes its own lock through another manager waits for itself.
pub(super) async fn names_this_process(env: &Env) {
    let lock = env.manager().await.named("db:migrate");
    let other = env.manager().await.named("db:migrate");
    lock.with(async || {
        let session = env.holder(lock.key()).await;
        let late = other.with_timeout(SHORT, async || ()).await;
        let text = format!("{}", late.as_ref().unwrap_err());
        match late {
            Err(Error::Timeout { holders, .. }) => {
                assert_eq!(holders.len(), 1);
                assert_eq!(holders[0].session.number(), session);
                assert!(holders[0].this_process);
            }
            other => panic!("should have timed out: {other:?}"),
        }
        assert!(text.contains("this process"), "{text}");
        env.holder(lock.key()).await;
    })
    .await
    .unwrap();
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
