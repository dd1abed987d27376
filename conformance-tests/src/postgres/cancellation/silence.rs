use std::time::{Duration, Instant};

use advisory_core::{Error, LockGuard, LockManager, Result, Stage};

use super::{
    COMMIT, TRY_LOCK, UNLOCK, WAIT, assert_nothing_is_left, assert_pool_is_whole,
    until_disconnected,
};
use crate::{
    postgres::{Point, PoolMode, ProxiedEnv, proxied::BOUND},
    sync::DEADLINE,
};

const NAME: &str = "imports:run";

/// What is added to a timeout for a server that has stopped answering.
const GRACE: Duration = Duration::from_secs(1);

/// What a busy machine may add to anything.
const MARGIN: Duration = Duration::from_secs(2);

/// Longer than any of these cases, so that it bounds nothing.
const NEVER: Duration = Duration::from_secs(600);

/// Short enough for a test, and long enough for a server that does answer.
const ANSWER_WITHIN: Duration = Duration::from_millis(300);

const TIMEOUT: Duration = Duration::from_millis(200);

/// How soon a connection that is on its way back to its pool is given up, if nothing else bounds it,
/// and what a busy machine adds.
const BACK_WITHIN: Duration = Duration::from_secs(5 + 2);

/// The type of the server's message that it is ready for the next statement.
const READY: u8 = b'Z';

pub(super) async fn ends_a_checkout_in_time(env: &ProxiedEnv) {
    let locks = env.proxied_with(1, NEVER).await;
    env.proxy().silence();
    let late = within(TIMEOUT.max(GRACE), locks.named(NAME).lock_timeout(TIMEOUT)).await;
    assert_eq!(stage(late.map(drop)), Stage::Connection);
    until_disconnected(BOUND, env).await;
    env.proxy().speak();
    assert_nothing_is_left(env, &locks, 1).await;
}

pub(super) async fn ends_a_try_in_time(env: &ProxiedEnv) {
    for sql in [TRY_LOCK, "pg_catalog.version()"] {
        let locks = env.proxied_with(1, NEVER).await;
        let stop = env.proxy().stop(Point::execute(sql));
        let lock = locks.named(NAME);
        let attempt = env.spawn(async move { lock.lock_timeout(TIMEOUT).await.map(drop) });
        stop.reached().await;
        stop.swallow();
        let late = within(TIMEOUT + GRACE, attempt).await;
        assert!(matches!(stage(late), Stage::Server | Stage::Connection));
        until_disconnected(BOUND, env).await;
        assert_nothing_is_left(env, &locks, 1).await;
    }
}

pub(super) async fn ends_a_wait_in_time(env: &ProxiedEnv) {
    // Long enough for a busy machine to come to the wait.
    const TIMEOUT: Duration = Duration::from_secs(2);

    let rival = env.manager().await.named(NAME).lock().await.unwrap();
    for point in [Point::execute(WAIT), Point::execute(WAIT).unanswered()] {
        let locks = env.proxied_with(1, NEVER).await;
        let stop = env.proxy().stop(point);
        let lock = locks.named(NAME);
        let attempt =
            env.spawn(async move { lock.with_timeout(TIMEOUT, async || ()).await.map(drop) });
        stop.reached().await;
        stop.swallow();
        assert_eq!(stage(within(TIMEOUT + GRACE, attempt).await), Stage::Server);
        until_disconnected(BOUND, env).await;
        env.until_waiters(rival.key(), 0).await;
        assert_pool_is_whole(env, &locks, 1).await;
    }
    rival.release().await.unwrap();
    let locks = env.proxied(1).await;
    assert_nothing_is_left(env, &locks, 1).await;
}

/// A session that does not answer is lost, with all that it held.
pub(super) async fn ends_a_nested_wait_in_time(env: &ProxiedEnv) {
    let locks = env.proxied_with(1, ANSWER_WITHIN).await;
    let (outer, inner) = (locks.named("outer"), locks.named("inner"));
    let section = outer
        .with(async || {
            let stop = env.proxy().stop(Point::execute(TRY_LOCK));
            let attempt = Box::pin(inner.lock_timeout(TIMEOUT));
            let swallowing = Box::pin(async {
                stop.reached().await;
                stop.swallow();
            });
            let attempt = async { futures::join!(attempt, swallowing).0 };
            let lost = within(ANSWER_WITHIN + GRACE, attempt).await;
            assert!(matches!(lost, Err(Error::Lost { .. })), "{lost:?}");
        })
        .await;
    assert!(matches!(section, Err(Error::Lost { .. })), "{section:?}");
    until_disconnected(BOUND, env).await;
    assert_nothing_is_left(env, &locks, 1).await;
}

pub(super) async fn ends_a_lock_without_timeout(env: &ProxiedEnv) {
    for sql in [TRY_LOCK, WAIT] {
        let rival = match sql {
            WAIT => Some(env.manager().await.named(NAME).lock().await.unwrap()),
            _ => None,
        };
        let locks = env.proxied_with(1, ANSWER_WITHIN).await;
        let stop = env.proxy().stop(Point::execute(sql));
        let lock = locks.named(NAME);
        let attempt = env.spawn(async move { lock.lock().await.map(drop) });
        stop.reached().await;
        stop.swallow();
        // A wait of no limit may last for as long as the longest turn.
        if rival.is_none() {
            assert_eq!(stage(within(ANSWER_WITHIN, attempt).await), Stage::Server);
            until_disconnected(BOUND, env).await;
        } else {
            assert!(attempt.cancel().await.is_none());
        }
        if let Some(rival) = rival {
            rival.release().await.unwrap();
        }
        assert_nothing_is_left(env, &locks, 1).await;
    }
}

pub(super) async fn ends_a_release_in_time(env: &ProxiedEnv) {
    for point in [Point::execute(UNLOCK), Point::execute(UNLOCK).unanswered()] {
        let locks = env.proxied_with(1, ANSWER_WITHIN).await;
        let guard = locks.named(NAME).lock().await.unwrap();
        let session = env.holder(guard.key()).await;
        let stop = env.proxy().stop(point);
        let release = env.spawn(guard.release());
        stop.reached().await;
        stop.swallow();
        let released = within(ANSWER_WITHIN, release).await;
        assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");
        until_disconnected(BOUND, env).await;
        env.until_ended(session).await;
        assert_nothing_is_left(env, &locks, 1).await;
    }
}

/// It waits for a release that the server does not answer, and for nothing else.
pub(super) async fn ends_a_close_in_time(env: &ProxiedEnv) {
    let locks = env.proxied_with(2, ANSWER_WITHIN).await;
    // One connection lies in the pool, and one has a lock on it.
    let idle = locks.named("other").lock().await.unwrap();
    let guard = locks.named(NAME).lock().await.unwrap();
    idle.release().await.unwrap();
    env.proxy().silence();
    let release = env.spawn(guard.release());
    within(2 * ANSWER_WITHIN + GRACE, locks.close())
        .await
        .unwrap();
    release.await.unwrap_err();
    env.until_empty().await;
}

/// The same with a pool of the backend's own, which is closed with all that is in it.
pub(super) async fn ends_a_close_of_a_pool_in_time(env: &ProxiedEnv) {
    for going_back in [false, true] {
        let locks = env.owned(2, ANSWER_WITHIN).await;
        let idle = locks.named("other").lock().await.unwrap();
        let guard = locks.named(NAME).lock().await.unwrap();
        if going_back {
            release_into_silence(env, idle).await;
        } else {
            idle.release().await.unwrap();
        }
        env.proxy().silence();
        let release = env.spawn(guard.release());
        let closed = within(2 * ANSWER_WITHIN + GRACE, locks.close()).await;
        // A driver may insist on asking what goes back whether it is well. Nobody else uses it.
        assert!(closed.is_ok() || stage(closed) == Stage::Server);
        release.await.unwrap_err();
        let refused = locks.named(NAME).try_lock().await;
        assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
        drop(locks);
        until_disconnected(BACK_WITHIN, env).await;
        env.until_empty().await;
        env.proxy().speak();
    }
}

/// It does not wait for the server to answer others.
pub(super) async fn ends_an_impatient_close_in_time(env: &ProxiedEnv) {
    let locks = env.owned(2, NEVER).await;
    let idle = locks.named("other").lock().await.unwrap();
    let guard = locks.named(NAME).lock().await.unwrap();
    idle.release().await.unwrap();
    env.proxy().silence();
    let release = env.spawn(guard.release());
    let late = within(TIMEOUT, locks.close_timeout(TIMEOUT)).await;
    assert_eq!(stage(late), Stage::Close);
    assert!(release.cancel().await.is_none());
    drop(locks);
    until_disconnected(BACK_WITHIN, env).await;
    env.until_empty().await;
}

/// sqlx asks a connection that goes back whether it is well, and would wait for the answer for as
/// long as the network does. Nobody's lock depends on it, but its place in the pool does.
pub(super) async fn while_a_connection_goes_back(env: &ProxiedEnv) {
    let locks = env.proxied_with(1, ANSWER_WITHIN).await;
    let guard = locks.named(NAME).lock().await.unwrap();
    let key = guard.key();
    release_into_silence(env, guard).await;
    env.until_free_within(BOUND, key).await;
    within(BACK_WITHIN, assert_usable_in_the_end(&locks)).await;
    assert_nothing_is_left(env, &locks, 1).await;
}

/// The answer to the release, or in pinned mode to the transaction's end, is the last thing that its
/// connection ever hears.
async fn release_into_silence(env: &ProxiedEnv, guard: LockGuard) {
    let last = if PoolMode::pins_all() { COMMIT } else { UNLOCK };
    let last = env.proxy().stop(Point::execute(last));
    let release = env.spawn(guard.release());
    last.reached().await;
    let answered = env.proxy().stop(Point::answer(READY).unanswered());
    last.go_on();
    answered.reached().await;
    answered.swallow();
    within(ANSWER_WITHIN, release).await.unwrap();
}

async fn assert_usable_in_the_end(locks: &LockManager) {
    let started = Instant::now();
    loop {
        let used = locks.named(NAME).with_timeout(DEADLINE, async || ()).await;
        if used.is_ok() {
            return;
        }
        assert!(started.elapsed() < DEADLINE, "{used:?}");
    }
}

/// Fails if it does not end in time, give or take what the machine adds.
async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> T {
    let started = Instant::now();
    let output = work.await;
    let took = started.elapsed();
    assert!(took <= limit + MARGIN, "took {took:?}, not {limit:?}");
    output
}

/// What a caller was waiting for whose patience ended.
fn stage(result: Result<()>) -> Stage {
    match result {
        Err(Error::Timeout { stage, .. }) => stage,
        other => panic!("should have timed out: {other:?}"),
    }
}
