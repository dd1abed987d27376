use std::sync::Arc;

use advisory_core::LockMode;

use crate::{
    Env,
    sync::{DEADLINE, Gate, Rendezvous},
};

pub(super) async fn readers_overlap(env: &Env) {
    const READERS: usize = 4;

    let all_inside = Arc::new(Rendezvous::of(READERS));
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let lock = env
            .manager_with_pool_of(1)
            .await
            .named("catalogue")
            .shared();
        let all_inside = Arc::clone(&all_inside);
        readers.push(env.spawn(async move {
            // Nobody leaves before everybody is in.
            lock.with(async || all_inside.reached().await).await
        }));
    }
    for reader in readers {
        reader.await.unwrap();
    }
    assert_eq!(env.held().await, []);
}

pub(super) async fn writer_waits_for_readers(env: &Env) {
    let lock = env.manager().await.named("catalogue");
    let first = lock.clone().shared().lock().await.unwrap();
    let second = lock.clone().shared().lock().await.unwrap();
    let modes = modes(env, lock.key()).await;
    assert_eq!(modes, [LockMode::Shared, LockMode::Shared]);

    let entered = Arc::new(Gate::default());
    let writer = env.spawn({
        let (lock, entered) = (lock.clone(), Arc::clone(&entered));
        async move { lock.with(async || entered.open()).await }
    });
    env.until_waiters(lock.key(), 1).await;
    first.release().await.unwrap();
    env.until_waiters(lock.key(), 1).await;
    assert!(!entered.is_open());
    second.release().await.unwrap();
    writer.await.unwrap();
    assert!(entered.is_open());
}

pub(super) async fn readers_wait_for_the_writer(env: &Env) {
    let lock = env.manager().await.named("catalogue");
    let writer = lock.lock().await.unwrap();
    let both_inside = Arc::new(Rendezvous::of(2));
    let readers = [(); 2].map(|()| {
        let (lock, both_inside) = (lock.clone().shared(), Arc::clone(&both_inside));
        env.spawn(async move { lock.with(async || both_inside.reached().await).await })
    });
    env.until_waiters(lock.key(), 2).await;
    writer.release().await.unwrap();
    for reader in readers {
        reader.await.unwrap();
    }
}

pub(super) async fn try_misses_across_modes(env: &Env) {
    let writing = env.manager().await.named("catalogue");
    let reading = env.manager().await.named("catalogue").shared();

    let reader = reading.try_lock().await.unwrap().expect("it is free");
    assert!(writing.try_lock().await.unwrap().is_none());
    let another = reading.try_lock().await.unwrap().expect("readers overlap");
    reader.release().await.unwrap();
    assert!(writing.try_lock().await.unwrap().is_none());
    another.release().await.unwrap();

    let writer = writing.try_lock().await.unwrap().expect("it is free again");
    assert!(reading.try_lock().await.unwrap().is_none());
    writer.release().await.unwrap();
}

/// A release in the wrong mode would be refused by the server, and reported as a loss.
pub(super) async fn is_released_in_its_mode(env: &Env) {
    let locks = env.manager().await;
    for key in [locks.named("catalogue"), locks.keyed((7, 7))] {
        let lock = key.shared();
        let guard = lock.lock().await.unwrap();
        assert_eq!(guard.mode(), LockMode::Shared);
        assert_eq!(modes(env, lock.key()).await, [LockMode::Shared]);
        guard.release().await.unwrap();
        assert_eq!(env.held().await, []);
    }
}

/// One owner may hold a key in both modes; each is given back by itself.
pub(super) async fn both_modes_of_one_owner(env: &Env) {
    let lock = env.manager().await.named("catalogue");
    let rival = env.manager().await.named("catalogue").shared();
    let guard = lock
        .with(async || {
            let guard = lock.clone().shared().lock().await.unwrap();
            assert_eq!(env.holders(lock.key()).await.len(), 2);
            assert!(rival.try_lock().await.unwrap().is_none());
            guard
        })
        .await
        .unwrap();
    assert_eq!(modes(env, lock.key()).await, [LockMode::Shared]);
    let other = rival.lock_timeout(DEADLINE).await.unwrap();
    other.release().await.unwrap();
    guard.release().await.unwrap();
    assert_eq!(env.held().await, []);
}

async fn modes(env: &Env, key: advisory_core::LockKey) -> Vec<LockMode> {
    let holders = env.holders(key).await;
    holders.into_iter().map(|(_, mode)| mode).collect()
}
