use std::sync::Arc;

use advisory_core::{OnLoss, Section};

use crate::{
    Env,
    outcome::lost,
    sync::{DEADLINE, Gate},
};

pub(super) async fn is_told_by_release(env: &Env) {
    let lock = env.manager().await.named("db:migrate");
    let guard = lock.lock().await.unwrap();
    env.terminate(env.holder(lock.key()).await).await;
    assert_eq!(lost(guard.release().await), Section::None);
}

pub(super) async fn is_told_after_the_section(env: &Env) {
    let lock = env.manager().await.named("db:migrate");
    let result = lock
        .with(async || env.terminate(env.holder(lock.key()).await).await)
        .await;
    lost(result);
}

pub(super) async fn is_told_for_every_lock_of_the_session(env: &Env) {
    let locks = env.manager().await;
    let section = locks.named("section");
    let result = section
        .with(async || {
            let one = locks.named("one").lock().await.unwrap();
            let other = locks.named("other").shared().lock().await.unwrap();
            env.terminate(env.holder(section.key()).await).await;
            lost(one.release().await);
            lost(other.release().await);
        })
        .await;
    lost(result);
}

pub(super) async fn is_told_to_nested_work(env: &Env) {
    let locks = env.manager().await;
    let outer = locks.named("outer").on_loss(OnLoss::Continue);
    let inner = locks.named("inner");
    for ways in 0..3 {
        let result = outer.with(async || {
            env.terminate(env.holder(outer.key()).await).await;
            // Whatever it is that finds out, what counts is that the outer lock is gone.
            lost(match ways {
                0 => inner.lock().await.map(drop),
                1 => inner.try_with(async || ()).await.map(drop),
                _ => inner.with_timeout(DEADLINE, async || ()).await,
            });
        });
        assert_eq!(lost(result.await), Section::Completed);
        assert_eq!(env.held().await, []);
    }
}

/// What the session held went with it, and must not be entered anew.
pub(super) async fn is_told_to_those_who_reenter(env: &Env) {
    let locks = env.manager().await;
    let outer = locks.named("outer").on_loss(OnLoss::Continue);
    let inner = locks.named("inner");
    let mut ran = false;
    let result = outer.with(async || {
        env.terminate(env.holder(outer.key()).await).await;
        lost(inner.try_lock().await);

        lost(outer.lock().await);
        lost(outer.try_lock().await);
        lost(outer.with(async || ran = true).await);
        lost(outer.try_with(async || ran = true).await);
    });
    assert_eq!(lost(result.await), Section::Completed);
    assert!(!ran);
    assert_eq!(env.held().await, []);
}

pub(super) async fn ends_a_nested_wait(env: &Env) {
    let locks = env.manager().await;
    let (outer, inner) = (locks.named("outer"), locks.named("inner"));
    let rival = env.manager().await.named("inner").lock().await.unwrap();
    let entered = Arc::new(Gate::default());
    let waiting = env.spawn({
        let (outer, inner, entered) = (outer.clone(), inner.clone(), Arc::clone(&entered));
        async move {
            let nested = outer.with(async || inner.with(async || entered.open()).await);
            nested.await
        }
    });
    env.until_waiters(inner.key(), 1).await;
    env.terminate(env.holder(outer.key()).await).await;
    lost(waiting.await);
    assert!(!entered.is_open());
    env.until_waiters(inner.key(), 0).await;
    env.holder(inner.key()).await;
    rival.release().await.unwrap();
    assert_eq!(env.held().await, []);
}

pub(super) async fn is_seen_by_the_section(env: &Env) {
    let locks = env.manager().await;
    let lock = locks.named("db:migrate").on_loss(OnLoss::Continue);
    let other = locks.named("other");
    let result = lock.with_guard(async |guard| {
        assert!(!guard.is_lost());
        env.terminate(env.holder(lock.key()).await).await;
        lost(other.lock().await);
        assert!(guard.is_lost());
    });
    assert_eq!(lost(result.await), Section::Completed);
}

pub(super) async fn lets_a_rival_in(env: &Env) {
    let lock = env.manager().await.named("db:migrate");
    let rival = env.manager().await.named("db:migrate");
    let guard = lock.lock().await.unwrap();
    let first = env.holder(lock.key()).await;
    env.terminate(first).await;

    let next = rival.lock_timeout(DEADLINE).await.unwrap();
    let second = env.holder(lock.key()).await;
    assert_ne!(first, second);
    // The late release of the first must not free the second's lock.
    lost(guard.release().await);
    assert_eq!(env.holder(lock.key()).await, second);
    next.release().await.unwrap();
}

pub(super) async fn leaves_the_manager_usable(env: &Env) {
    let locks = env.manager_with_pool_of(2).await;
    let lock = locks.named("db:migrate");
    for _ in 0..4 {
        let guard = lock.lock().await.unwrap();
        let session = env.holder(lock.key()).await;
        env.terminate(session).await;
        lost(guard.release().await);
        lock.with(async || assert_ne!(env.holder(lock.key()).await, session))
            .await
            .unwrap();
    }
    assert_eq!(env.held().await, []);
}
