use advisory_core::{Error, Result, Section};

use crate::{Env, sync::DEADLINE};

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

/// What became of the section whose lock was lost.
fn lost<T: std::fmt::Debug>(result: Result<T>) -> Section {
    match result {
        Err(Error::Lost { section, .. }) => section,
        other => panic!("the lock was lost, and this says: {other:?}"),
    }
}
