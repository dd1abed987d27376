use advisory_core::Error;
use futures::FutureExt;

use super::{assert_nothing_is_left, at_every_poll};
use crate::{
    Env,
    interrupted::{Interruption, interrupted},
    sync::DEADLINE,
};

const NAME: &str = "imports:run";

pub(super) async fn of_a_section(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let lock = locks.named(NAME);
    let make = || lock.with(async || 7).boxed();
    let value = at_every_poll(make, || assert_nothing_is_left(env, &locks).boxed()).await;
    assert_eq!(value.unwrap(), 7);
}

pub(super) async fn of_a_release(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let lock = locks.named(NAME);
    for polls in 1.. {
        let mut ended = false;
        for interruption in [Interruption::After(polls), Interruption::Woken(polls)] {
            let guard = lock.lock().await.unwrap();
            let released = interrupted(Box::pin(guard.release()), interruption).await;
            ended |= released.is_some_and(|released| released.is_ok());
            assert_nothing_is_left(env, &locks).await;
        }
        if ended {
            return;
        }
    }
}

/// The outer section goes on, on the same session, whatever becomes of the inner one.
pub(super) async fn of_a_nested_section(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let (outer, inner) = (locks.named("outer"), locks.named("inner"));
    outer
        .with(async || {
            let session = env.holder(outer.key()).await;
            let make = || inner.with(async || ()).boxed();
            at_every_poll(make, || {
                async {
                    env.until_free_within(super::BOUND, inner.key()).await;
                    assert_eq!(env.holder(outer.key()).await, session);
                }
                .boxed()
            })
            .await
            .unwrap();
        })
        .await
        .unwrap();
    assert_nothing_is_left(env, &locks).await;
}

pub(super) async fn of_a_nested_wait(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let (outer, inner) = (locks.named("outer"), locks.named("inner"));
    let rival = env.manager().await.named("inner");
    outer
        .with(async || {
            let session = env.holder(outer.key()).await;
            for polls in 1..10 {
                for interruption in [Interruption::After(polls), Interruption::Woken(polls)] {
                    let held = rival.lock().await.unwrap();
                    let theirs = env.holder(inner.key()).await;
                    let wait = Box::pin(async { inner.lock().await.map(drop) });
                    let entered = interrupted(wait, interruption).await;
                    assert!(entered.is_none(), "it is held elsewhere");
                    assert_eq!(env.holder(inner.key()).await, theirs);
                    held.release().await.unwrap();
                    env.until_free_within(super::BOUND, inner.key()).await;
                    assert_eq!(env.holder(outer.key()).await, session);
                }
            }
        })
        .await
        .unwrap();
    assert_nothing_is_left(env, &locks).await;
}

pub(super) async fn of_a_lock_on_a_session(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let (held, wanted) = (locks.named("held"), locks.named("wanted"));
    let session = locks.session().await.unwrap();
    let guard = session.lock(&held).await.unwrap();
    let number = env.holder(held.key()).await;
    let make = || async { session.lock(&wanted).await?.release().await }.boxed();
    at_every_poll(make, || {
        async {
            // Whoever uses the session next ends what is under way on it.
            let other = session.lock_timeout(&locks.named("other"), DEADLINE).await;
            other.unwrap().release().await.unwrap();
            assert_eq!(env.holders(wanted.key()).await, []);
            assert_eq!(env.holder(held.key()).await, number);
        }
        .boxed()
    })
    .await
    .unwrap();
    guard.release().await.unwrap();
    session.release().await.unwrap();
    assert_nothing_is_left(env, &locks).await;
}

/// It stays closed, and those inside are not harmed.
pub(super) async fn of_a_close(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let lock = locks.named(NAME);
    let guard = lock.lock().await.unwrap();
    // Nothing would wake it for a second poll.
    for _ in 0..3 {
        let closing = Box::pin(locks.close());
        let closed = interrupted(closing, Interruption::After(1)).await;
        assert!(closed.is_none(), "there is a guard");
        assert!(matches!(lock.try_lock().await, Err(Error::Closed)));
        env.holder(lock.key()).await;
    }
    guard.release().await.unwrap();
    locks.close().await.unwrap();
    let others = env.manager_with_pool_of(1).await;
    assert_nothing_is_left(env, &others).await;
}
