use crate::Env;

pub(super) async fn takes_a_free_lock(env: &Env) {
    let lock = env.manager().await.named("nightly");
    let guard = lock.try_lock().await.unwrap().expect("it is free");
    env.holder(lock.key()).await;
    guard.release().await.unwrap();
    assert_eq!(env.held().await, []);
}

pub(super) async fn misses_a_held_lock(env: &Env) {
    let locks = env.manager().await;
    let rival = env.manager().await;
    let guard = locks.named("nightly").lock().await.unwrap();
    let holder = env.holder(guard.key()).await;

    for locks in [&locks, &rival] {
        assert!(locks.named("nightly").try_lock().await.unwrap().is_none());
    }
    assert_eq!(env.holder(guard.key()).await, holder);
    guard.release().await.unwrap();
}

pub(super) async fn misses_without_queueing(env: &Env) {
    let lock = env.manager().await.named("nightly");
    let rival = env.manager().await.named("nightly");
    let guard = lock.lock().await.unwrap();
    for _ in 0..20 {
        for lock in [&lock, &rival] {
            assert!(lock.try_lock().await.unwrap().is_none());
        }
        env.until_waiters(lock.key(), 0).await;
    }
    guard.release().await.unwrap();
    // Had a try left anything behind, it would be granted now.
    env.until_empty().await;
    assert_eq!(env.held().await, []);
}

/// The second task finds no connection, and a lock that its own manager holds.
pub(super) async fn misses_with_a_pool_of_one(env: &Env) {
    let lock = env.manager_with_pool_of(1).await.named("nightly");
    let guard = lock.lock().await.unwrap();
    let rival = env.spawn({
        let lock = lock.clone();
        async move { lock.try_lock().await.map(|missed| missed.is_none()) }
    });
    assert!(rival.await.unwrap());
    guard.release().await.unwrap();
}

pub(super) async fn with_runs_the_section_on_a_hit(env: &Env) {
    let lock = env.manager().await.named("nightly");
    let ran = lock
        .try_with(async || {
            env.holder(lock.key()).await;
            17
        })
        .await;
    assert_eq!(ran.unwrap(), Some(17));
    assert_eq!(env.held().await, []);
}

pub(super) async fn with_skips_the_section_on_a_miss(env: &Env) {
    let lock = env.manager().await.named("nightly");
    let rival = env.manager().await.named("nightly");
    let guard = lock.lock().await.unwrap();
    for lock in [&lock, &rival] {
        let mut ran = false;
        let missed = lock.try_with(async || ran = true).await;
        assert_eq!(missed.unwrap(), None);
        assert!(!ran);
    }
    guard.release().await.unwrap();
}

pub(super) async fn hits_again_after_the_release(env: &Env) {
    let lock = env.manager().await.named("nightly");
    let rival = env.manager().await.named("nightly");
    for _ in 0..5 {
        let guard = lock.try_lock().await.unwrap().expect("nobody is there");
        assert!(rival.try_lock().await.unwrap().is_none());
        guard.release().await.unwrap();

        let guard = rival.try_lock().await.unwrap().expect("it was released");
        assert!(lock.try_lock().await.unwrap().is_none());
        guard.release().await.unwrap();
    }
}
