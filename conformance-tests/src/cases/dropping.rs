use std::{sync::Arc, thread, time::Duration};

use futures::{
    future::{Either, pending, select},
    poll,
};

use crate::{
    Env,
    sync::{DEADLINE, Gate, pause},
};

/// How soon a lock must be free once its guard has been dropped.
const BOUND: Duration = Duration::from_secs(1);

pub(super) async fn a_guard_lets_a_rival_in(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    let rival = env.manager().await.named("imports:run");
    for _ in 0..3 {
        drop(lock.lock().await.unwrap());
        let guard = rival.lock_timeout(BOUND).await.unwrap();
        env.holder(lock.key()).await;
        guard.release().await.unwrap();
    }
    assert_eq!(env.held().await, []);
}

pub(super) async fn a_guard_outside_any_runtime(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    let guard = lock.lock().await.unwrap();
    env.holder(lock.key()).await;
    thread::spawn(|| drop(guard)).join().unwrap();
    env.until_free_within(BOUND, lock.key()).await;
}

pub(super) async fn one_guard_of_three(env: &Env) {
    let locks = env.manager().await;
    let section = locks.named("section");
    section
        .with(async || {
            let first = locks.named("first").lock().await.unwrap();
            let second = locks.named("second").lock().await.unwrap();
            let third = locks.named("third").lock().await.unwrap();
            let key = second.key();
            thread::spawn(|| drop(second)).join().unwrap();
            env.until_free_within(BOUND, key).await;

            let session = env.holder(section.key()).await;
            assert_eq!(env.holder(first.key()).await, session);
            assert_eq!(env.holder(third.key()).await, session);
            first.release().await.unwrap();
            third.release().await.unwrap();
        })
        .await
        .unwrap();
    assert_eq!(env.held().await, []);
}

/// A nested section that is dropped frees its own lock and nothing else.
pub(super) async fn a_section_of_a_session_in_use(env: &Env) {
    let locks = env.manager().await;
    let (outer, inner) = (locks.named("outer"), locks.named("inner"));
    outer
        .with(async || {
            let inside = Gate::default();
            let endless = inner.with(async || {
                inside.open();
                pending::<()>().await;
            });
            let passed = select(Box::pin(endless), Box::pin(inside.passed())).await;
            let Either::Right(((), endless)) = passed else {
                panic!("the inner section cannot end");
            };
            env.holder(inner.key()).await;
            drop(endless);
            env.until_free_within(BOUND, inner.key()).await;
            env.holder(outer.key()).await;
        })
        .await
        .unwrap();
    assert_eq!(env.held().await, []);
}

pub(super) async fn a_wait_leaves_no_waiter(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    let guard = lock.lock().await.unwrap();
    let waiting = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().await.map(drop) }
    });
    env.until_waiters(lock.key(), 1).await;
    assert!(waiting.cancel().await.is_none());
    env.until_waiters(lock.key(), 0).await;
    guard.release().await.unwrap();
    env.until_empty().await;
}

/// A dropped wait must not stand before those behind it, on the server.
pub(super) async fn a_wait_passes_its_turn_on(env: &Env) {
    let lock = async || env.manager().await.named("imports:run");
    let (held, first, second) = (lock().await, lock().await, lock().await);
    let guard = held.lock().await.unwrap();
    let first = env.spawn(async move { first.lock().await.map(drop) });
    env.until_waiters(held.key(), 1).await;
    let entered = Arc::new(Gate::default());
    let second = env.spawn({
        let entered = Arc::clone(&entered);
        async move { second.with(async || entered.open()).await }
    });
    env.until_waiters(held.key(), 2).await;

    assert!(first.cancel().await.is_none());
    guard.release().await.unwrap();
    second.await.unwrap();
    assert!(entered.is_open());
    env.until_empty().await;
}

/// A release that is given up half-way, beside another lock of the same manager.
pub(super) async fn a_release_harms_nobody_else(env: &Env) {
    let locks = env.manager().await;
    let stays = locks.named("stays").lock().await.unwrap();
    for _ in 0..10 {
        let goes = locks.named("goes").lock().await.unwrap();
        let key = goes.key();
        let mut release = Box::pin(goes.release());
        _ = poll!(&mut release);
        drop(release);
        env.until_free_within(BOUND, key).await;
    }
    assert!(!stays.is_lost());
    stays.release().await.unwrap();
}

/// Acquisitions that are dropped at any moment: before, during and after the first message.
pub(super) async fn short_waits_many_times(env: &Env) {
    let locks = env.manager_with_pool_of(3).await;
    let lock = locks.named("imports:run");
    let rival = env.manager().await.named("imports:run");
    for round in 0..60_u64 {
        let held = match round % 3 {
            0 => rival.try_lock().await.unwrap(),
            _ => None,
        };
        let patience = Duration::from_micros(round * 50);
        let mut attempt = Box::pin(lock.lock());
        // Dropping a future that was never polled would be too easy.
        if poll!(&mut attempt).is_pending() {
            drop(select(attempt, Box::pin(pause(patience))).await);
        }
        if let Some(guard) = held {
            guard.release().await.unwrap();
        }
    }
    env.until_empty().await;
    let guard = lock.lock_timeout(DEADLINE).await.unwrap();
    guard.release().await.unwrap();
}
/// As [`one_guard_of_three`], on a session in hand: no section's task is there to help.
pub(super) async fn one_guard_of_three_by_hand(env: &Env) {
    let locks = env.manager().await;
    let session = locks.session().await.unwrap();
    let [first, second, third] = [1, 2, 3].map(|key: i64| locks.keyed(key));
    let one = session.lock(&first).await.unwrap();
    let two = session.lock(&second).await.unwrap();
    let three = session.lock(&third).await.unwrap();
    thread::spawn(|| drop(two)).join().unwrap();
    env.until_free_within(BOUND, second.key()).await;

    let id = env.holder(first.key()).await;
    assert_eq!(env.holder(third.key()).await, id);
    one.release().await.unwrap();
    three.release().await.unwrap();
    session.release().await.unwrap();
    assert_eq!(env.held().await, []);
}
