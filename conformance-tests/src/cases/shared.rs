use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use advisory_core::LockMode;

use crate::{
    Env,
    outcome::victims,
    sync::{DEADLINE, Gate, Rendezvous, pause},
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

/// A lock held exclusively covers the shared mode, for its owner.
pub(super) async fn exclusive_holder_may_read(env: &Env) {
    let lock = env.manager().await.named("catalogue");
    let rival = env.manager().await.named("catalogue").shared();
    let reading = lock.clone().shared();
    lock.with(async || {
        let tried = reading.try_lock().await.unwrap().expect("it is ours");
        assert_eq!(tried.mode(), LockMode::Shared);
        reading.with(async || ()).await.unwrap();
        assert!(rival.try_lock().await.unwrap().is_none());
        tried.release().await.unwrap();
        env.holder(lock.key()).await;
    })
    .await
    .unwrap();
    assert_eq!(env.held().await, []);
}

/// It waits for nobody, not even for a writer that was there before.
pub(super) async fn exclusive_holder_may_read_before_a_queued_writer(env: &Env) {
    let lock = env.manager().await.named("catalogue");
    let rival = env.manager().await.named("catalogue");
    let reading = lock.clone().shared();
    let entered = Arc::new(Gate::default());
    let writer = lock
        .with(async || {
            let writer = env.spawn({
                let (rival, entered) = (rival.clone(), Arc::clone(&entered));
                async move { rival.with(async || entered.open()).await }
            });
            env.until_waiters(lock.key(), 1).await;
            let guard = reading.lock_timeout(DEADLINE).await.unwrap();
            assert!(!entered.is_open());
            assert_eq!(env.holders(lock.key()).await.len(), 2);
            guard.release().await.unwrap();
            writer
        })
        .await
        .unwrap();
    writer.await.unwrap();
    assert!(entered.is_open());
    assert_eq!(env.held().await, []);
}

/// A reader does not go past a writer that waits: a try misses where it would otherwise hit.
pub(super) async fn queued_writer_holds_new_readers_off(env: &Env) {
    let reading = env.manager().await.named("catalogue").shared();
    let newcomer = env.manager().await.named("catalogue").shared();
    let writing = env.manager().await.named("catalogue");
    let first = reading.lock().await.unwrap();
    let guard = newcomer.try_lock().await.unwrap().expect("readers overlap");
    guard.release().await.unwrap();

    let writer = env.spawn({
        let writing = writing.clone();
        async move { writing.lock().await.unwrap() }
    });
    env.until_waiters(writing.key(), 1).await;
    // It may be out of the queue for a moment, but not for as long as this takes.
    let started = Instant::now();
    while let Some(guard) = newcomer.try_lock().await.unwrap() {
        guard.release().await.unwrap();
        assert!(started.elapsed() < DEADLINE, "the writer is not heeded");
    }
    first.release().await.unwrap();
    writer.await.release().await.unwrap();
    newcomer.with(async || ()).await.unwrap();
    assert_eq!(env.held().await, []);
}

/// There is a reader inside at any time, and a new one comes before the last one goes.
pub(super) async fn writer_does_not_starve(env: &Env) {
    /// Longer than a waiter stays in the queue at first.
    const HOLD: Duration = Duration::from_millis(600);
    const READERS: u32 = 3;
    /// Of a few holds' time, were they one after the other.
    const HOLDS: usize = 10 * READERS as usize;

    let writer_in = Arc::new(Gate::default());
    let holds = Arc::new(AtomicUsize::new(0));
    let mut readers = Vec::new();
    for reader in 0..READERS {
        let lock = env
            .manager_with_pool_of(1)
            .await
            .named("catalogue")
            .shared();
        let (writer_in, holds) = (Arc::clone(&writer_in), Arc::clone(&holds));
        readers.push(env.spawn(async move {
            pause(reader * HOLD / READERS).await;
            while !writer_in.is_open() {
                lock.with(async || {
                    holds.fetch_add(1, SeqCst);
                    pause(HOLD).await;
                })
                .await
                .unwrap();
            }
        }));
    }
    let writing = env.manager().await.named("catalogue");
    pause(HOLD).await;
    let before = holds.load(SeqCst);
    assert!(before >= 1);
    let guard = writing.lock_timeout(DEADLINE).await.unwrap();
    let meanwhile = holds.load(SeqCst) - before;
    writer_in.open();
    guard.release().await.unwrap();
    for reader in readers {
        reader.await;
    }
    assert!(meanwhile <= HOLDS, "{meanwhile} readers came first");
}

/// Two owners read, and both want to write before they stop reading.
pub(super) async fn double_upgrade_is_a_deadlock(env: &Env) {
    let both_read = Arc::new(Rendezvous::of(2));
    let mut tasks = Vec::new();
    for _ in 0..2 {
        let lock = env.manager().await.named("catalogue");
        let both_read = Arc::clone(&both_read);
        tasks.push(env.spawn(async move {
            let reading = lock.clone().shared();
            reading
                .with(async || {
                    both_read.reached().await;
                    lock.with_timeout(DEADLINE, async || ()).await
                })
                .await
                .unwrap()
        }));
    }
    assert_eq!(victims(tasks).await, 1);
    assert_eq!(env.held().await, []);
}

async fn modes(env: &Env, key: advisory_core::LockKey) -> Vec<LockMode> {
    let holders = env.holders(key).await;
    holders.into_iter().map(|(_, mode)| mode).collect()
}
