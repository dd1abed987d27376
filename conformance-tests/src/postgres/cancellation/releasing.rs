use std::future::pending;

use advisory_core::Error;

use super::{
    TRY_LOCK, UNLOCK, assert_nothing_is_left, assert_pool_is_whole, cancelled_at, moments,
    until_held,
};
use crate::postgres::{Point, ProxiedEnv, proxied::BOUND};

const NAME: &str = "imports:run";

/// If the server answers, the unlock is finished for the one who has gone; if not, the connection
/// is closed.
pub(super) async fn cancelled_frees_the_lock(env: &ProxiedEnv) {
    for point in moments(UNLOCK) {
        let locks = env.proxied(1).await;
        let guard = locks.named(NAME).lock().await.unwrap();
        let session = env.holder(guard.key()).await;
        let stop = env.proxy().stop(point);
        let release = env.spawn(guard.release());
        stop.reached().await;
        assert!(release.cancel().await.is_none());
        if point.is_unanswered() {
            env.until_ended(session).await;
        }
        stop.go_on();
        assert_nothing_is_left(env, &locks, 1).await;
    }
}

pub(super) async fn cancelled_after_the_section(env: &ProxiedEnv) {
    for point in moments(UNLOCK) {
        let locks = env.proxied(1).await;
        let lock = locks.named(NAME);
        let section = async move { lock.with(async || ()).await };
        cancelled_at(env, point, section).await;
        assert_nothing_is_left(env, &locks, 1).await;
    }
}

pub(super) async fn cut_is_reported(env: &ProxiedEnv) {
    for point in moments(UNLOCK) {
        let locks = env.proxied(1).await;
        let guard = locks.named(NAME).lock().await.unwrap();
        let (key, session) = (guard.key(), env.holder(guard.key()).await);
        let stop = env.proxy().stop(point);
        let release = env.spawn(guard.release());
        stop.reached().await;
        stop.cut();
        let released = release.await;
        assert!(
            matches!(released, Err(Error::Lost { .. } | Error::Backend(_))),
            "{released:?}"
        );
        env.until_free_within(BOUND, key).await;
        env.until_ended(session).await;
        assert_nothing_is_left(env, &locks, 1).await;
    }
}

pub(super) async fn inside_a_dropped_section(env: &ProxiedEnv) {
    let locks = env.proxied(1).await;
    for _ in 0..3 {
        let lock = locks.named(NAME);
        let key = lock.key();
        let section = env.spawn(async move { lock.with(async || pending::<()>().await).await });
        until_held(env, key).await;
        assert!(section.cancel().await.is_none());
        env.until_free_within(BOUND, key).await;
        assert_nothing_is_left(env, &locks, 1).await;
    }
}

/// A close that is cancelled has closed the door, and harms nobody inside.
pub(super) async fn while_the_manager_closes(env: &ProxiedEnv) {
    let locks = env.proxied(1).await;
    let guard = locks.named(NAME).lock().await.unwrap();
    let (key, session) = (guard.key(), env.holder(guard.key()).await);
    let closing = env.spawn({
        let locks = locks.clone();
        async move { locks.close().await }
    });
    while !matches!(locks.named(NAME).try_lock().await, Err(Error::Closed)) {}
    assert!(closing.cancel().await.is_none());
    assert!(env.is_held_by(key, session).await);

    let stop = env.proxy().stop(Point::execute(UNLOCK).unanswered());
    let release = env.spawn(guard.release());
    stop.reached().await;
    let closing = env.spawn({
        let locks = locks.clone();
        async move { locks.close().await }
    });
    assert!(closing.cancel().await.is_none());
    stop.go_on();
    release.await.unwrap();
    locks.close().await.unwrap();
    assert_eq!(env.held().await, []);

    drop(locks);

    // An acquisition that is cancelled on the way is nothing to wait for either.
    let locks = env.proxied(1).await;
    let stop = env.proxy().stop(Point::execute(TRY_LOCK).unanswered());
    let attempt = env.spawn({
        let lock = locks.named(NAME);
        async move { lock.lock().await.map(drop) }
    });
    stop.reached().await;
    let closing = env.spawn({
        let locks = locks.clone();
        async move { locks.close().await }
    });
    assert!(attempt.cancel().await.is_none());
    closing.await.unwrap();
    env.until_free_within(BOUND, key).await;
    drop(locks);
    let others = env.proxied(1).await;
    assert_pool_is_whole(env, &others, 1).await;
}
