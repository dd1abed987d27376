use std::sync::Arc;

use advisory_core::LockMode;

use crate::{
    Env,
    sync::{Gate, RacyCounter},
};

pub(super) async fn is_seen_from_outside(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    assert_eq!(env.held().await, []);

    let guard = lock.lock().await.unwrap();
    let seen = env.held().await;
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen[0].claim.key, lock.key());
    assert_eq!(seen[0].claim.mode, LockMode::Exclusive);
    assert_eq!((guard.key(), guard.mode()), (lock.key(), lock.mode()));

    guard.release().await.unwrap();
    assert_eq!(env.held().await, []);
}

pub(super) async fn can_be_repeated(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    for _ in 0..20 {
        let guard = lock.lock().await.unwrap();
        env.holder(lock.key()).await;
        guard.release().await.unwrap();
        assert_eq!(env.held().await, []);
    }
}

pub(super) async fn excludes_other_managers(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    let rival = env.manager().await.named("imports:run");
    excludes(env, lock, rival).await;
}

pub(super) async fn excludes_other_tasks_of_a_manager(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    excludes(env, lock.clone(), lock).await;
}

async fn excludes(env: &Env, lock: advisory_core::Lock, rival: advisory_core::Lock) {
    let guard = lock.lock().await.unwrap();
    let first = env.holder(lock.key()).await;

    let entered = Arc::new(Gate::default());
    let waiting = env.spawn({
        let (entered, rival) = (Arc::clone(&entered), rival.clone());
        async move {
            let guard = rival.lock().await.unwrap();
            entered.open();
            guard
        }
    });
    env.until_waiters(lock.key(), 1).await;
    assert!(!entered.is_open());

    guard.release().await.unwrap();
    let guard = waiting.await;
    assert!(entered.is_open());
    let second = env.holder(lock.key()).await;
    assert_ne!(first, second);
    guard.release().await.unwrap();
    env.until_empty().await;
}

pub(super) async fn serialises_a_racy_counter(env: &Env) {
    const TASKS: usize = 8;
    const ROUNDS: usize = 5;

    let counter = Arc::new(RacyCounter::default());
    let replicas = [env.manager().await, env.manager().await];
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let lock = replicas[task % replicas.len()].named("counter");
            let counter = Arc::clone(&counter);
            env.spawn(async move {
                for _ in 0..ROUNDS {
                    lock.with(async || counter.increment().await).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await;
    }
    assert_eq!(counter.value(), TASKS * ROUNDS);
}

pub(super) async fn belongs_to_the_guard_not_the_task(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    let taken = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().await.unwrap() }
    });
    let guard = taken.await;
    env.holder(lock.key()).await;
    env.spawn(guard.release()).await.unwrap();
    assert_eq!(env.held().await, []);
}

pub(super) async fn leaves_nothing_behind(env: &Env) {
    let locks = env.manager().await;
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let locks = locks.clone();
            env.spawn(async move {
                for round in 0..10 {
                    let lock = locks.keyed((task + round) % 4);
                    match round % 3 {
                        0 => lock.with(async || {}).await.unwrap(),
                        1 => drop(lock.try_with(async || {}).await.unwrap()),
                        _ => lock.lock().await.unwrap().release().await.unwrap(),
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await;
    }
    assert_eq!(env.held().await, []);
    env.until_empty().await;
}
