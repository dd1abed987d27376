use std::time::Duration;

use advisory_core::{LockManager, Result};
use futures::{
    future::{Either, select},
    poll,
};

use super::{
    FACTS, HOLDERS, POOLER, SET_UP, TRY_LOCK, WAIT, assert_nothing_is_left, cancelled_at, moments,
    moments_of_batch, until_held,
};
use crate::{
    postgres::{Point, ProxiedEnv},
    sync::{DEADLINE, pause},
};

const NAME: &str = "imports:run";

pub(super) async fn while_it_connects(env: &ProxiedEnv) {
    for point in [Point::startup(), Point::startup().unanswered()] {
        let locks = env.proxied(1).await;
        cancelled_at(env, point, lock(&locks)).await;
        assert_nothing_is_left(env, &locks, 1).await;
    }
}

pub(super) async fn while_it_looks_at_the_server(env: &ProxiedEnv) {
    cancelled_at_each(env, FACTS.into_iter().flat_map(moments_of_batch)).await;
}

pub(super) async fn while_it_looks_for_a_pooler(env: &ProxiedEnv) {
    cancelled_at_each(env, POOLER.into_iter().flat_map(moments_of_batch)).await;
}

/// The first lock of a manager, given up at each of the points.
async fn cancelled_at_each(env: &ProxiedEnv, points: impl Iterator<Item = Point>) {
    for point in points {
        let locks = env.proxied(1).await;
        cancelled_at(env, point, lock(&locks)).await;
        assert_nothing_is_left(env, &locks, 1).await;
    }
}

pub(super) async fn while_it_asks(env: &ProxiedEnv) {
    for point in moments(TRY_LOCK) {
        let locks = env.proxied(1).await;
        cancelled_at(env, point, lock(&locks)).await;
        // This also warms up the connection for what comes next.
        assert_nothing_is_left(env, &locks, 1).await;
        let tried = locks.named(NAME);
        let attempt = async move { tried.try_lock().await.map(drop) };
        cancelled_at(env, Point::execute(TRY_LOCK), attempt).await;
        assert_nothing_is_left(env, &locks, 1).await;
    }
}

/// Between the server's grant and the guard.
pub(super) async fn once_it_is_granted(env: &ProxiedEnv) {
    let locks = env.proxied(1).await;
    for _ in 0..5 {
        let stop = env.proxy().stop(Point::execute(TRY_LOCK).unanswered());
        let attempt = env.spawn(lock(&locks));
        stop.reached().await;
        let session = until_held(env, locks.named(NAME).key()).await;
        assert!(attempt.cancel().await.is_none());
        // The answer is never let through: the closed connection alone has to free it.
        assert_nothing_is_left(env, &locks, 1).await;
        env.until_ended(session).await;
    }
}

pub(super) async fn once_the_wait_is_granted(env: &ProxiedEnv) {
    let locks = env.proxied(1).await;
    let rival = env.manager().await.named(NAME);
    for _ in 0..5 {
        let held = rival.lock().await.unwrap();
        let stop = env.proxy().stop(Point::execute(WAIT).unanswered());
        let attempt = env.spawn(lock(&locks));
        stop.reached().await;
        env.until_waiters(rival.key(), 1).await;
        held.release().await.unwrap();
        let session = until_held(env, rival.key()).await;
        assert!(attempt.cancel().await.is_none());
        assert_nothing_is_left(env, &locks, 1).await;
        env.until_ended(session).await;
    }
}

pub(super) async fn while_the_connection_is_set_up(env: &ProxiedEnv) {
    for point in moments_of_batch(SET_UP) {
        let locks = env.proxied(1).await;
        cancelled_at(env, point, lock(&locks)).await;
        assert_nothing_is_left(env, &locks, 1).await;
    }
}

/// A host may vanish while it waits; the lock that it is granted all the same has to be bounded.
pub(super) async fn waits_on_a_connection_that_is_set_up(env: &ProxiedEnv) {
    let locks = env.proxied_with(1, DEADLINE).await;
    let held = env.manager().await.named(NAME).lock().await.unwrap();
    let set_up = env.proxy().stop(Point::execute(SET_UP));
    let wait = env.proxy().stop(Point::execute(WAIT));
    let attempt = env.spawn(lock(&locks));
    match select(Box::pin(set_up.reached()), Box::pin(wait.reached())).await {
        Either::Left(_) => set_up.go_on(),
        Either::Right(_) => panic!("it waits on a connection that is not set up"),
    }
    wait.go_on();
    env.until_waiters(held.key(), 1).await;
    held.release().await.unwrap();
    attempt.await.unwrap();
    assert_nothing_is_left(env, &locks, 1).await;
}

pub(super) async fn while_it_waits(env: &ProxiedEnv) {
    let rival = env.manager().await.named(NAME);
    for point in moments_of_batch(WAIT) {
        for slice in [1, 3] {
            let locks = env.proxied(1).await;
            let held = rival.lock().await.unwrap();
            let session = env.holder(rival.key()).await;
            cancelled_at(env, point.nth(slice), lock(&locks)).await;
            env.until_waiters(rival.key(), 0).await;
            assert!(env.is_held_by(rival.key(), session).await);
            held.release().await.unwrap();
            assert_nothing_is_left(env, &locks, 1).await;
        }
    }
}

pub(super) async fn while_it_asks_who_holds(env: &ProxiedEnv) {
    let rival = env.manager().await.named(NAME);
    for point in moments(HOLDERS) {
        let locks = env.proxied(1).await;
        let held = rival.lock().await.unwrap();
        let late = locks.named(NAME);
        let attempt = async move { late.lock_timeout(Duration::from_millis(20)).await.map(drop) };
        cancelled_at(env, point, attempt).await;
        held.release().await.unwrap();
        assert_nothing_is_left(env, &locks, 1).await;
    }
}

/// Under timeouts that end at any moment; and the pool has to stay at its full size.
pub(super) async fn many_times(env: &ProxiedEnv) {
    const CONNECTIONS: usize = 3;

    let locks = env.proxied(CONNECTIONS).await;
    let tasks: Vec<_> = (0..10_u64)
        .map(|task| {
            let locks = locks.clone();
            env.spawn(async move {
                for round in 0..30_u64 {
                    let patience = Duration::from_micros((round * 10 + task) * 10);
                    let mut attempt = Box::pin(lock(&locks));
                    // Dropping a future that was never polled would be too easy.
                    if poll!(&mut attempt).is_pending() {
                        drop(select(attempt, Box::pin(pause(patience))).await);
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await;
    }
    assert_nothing_is_left(env, &locks, CONNECTIONS).await;
    let rival = env.manager().await.named(NAME).try_lock().await.unwrap();
    rival.expect("nobody holds it").release().await.unwrap();
}

/// Takes the lock and drops it.
fn lock(locks: &LockManager) -> impl Future<Output = Result<()>> + Send + 'static {
    let lock = locks.named(NAME);
    async move { lock.lock().await.map(drop) }
}
