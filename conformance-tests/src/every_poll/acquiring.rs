use std::time::Duration;

use futures::{FutureExt, join};

use super::{assert_nothing_is_left, at_every_poll};
use crate::{
    Env,
    interrupted::{Interruption, interrupted},
    sync::{DEADLINE, pause},
};

const NAME: &str = "imports:run";

pub(super) async fn of_a_lock(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let lock = locks.named(NAME);
    let make = || async { lock.lock().await.map(drop) }.boxed();
    at_every_poll(make, || assert_nothing_is_left(env, &locks).boxed())
        .await
        .unwrap();
}

pub(super) async fn of_a_try(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let lock = locks.named(NAME);
    let make = || async { lock.try_lock().await.map(|guard| guard.is_some()) }.boxed();
    let hit = at_every_poll(make, || assert_nothing_is_left(env, &locks).boxed()).await;
    assert!(hit.unwrap());
}

/// One that ends, so that the question who holds the lock is among what is interrupted.
pub(super) async fn of_a_timeout(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let rival = env.manager().await.named(NAME);
    let lock = locks.named(NAME);
    let held = rival.lock().await.unwrap();
    let patience = Duration::from_millis(10);
    let make = || async { lock.lock_timeout(patience).await.map(drop) }.boxed();
    let other = locks.named("fresh");
    at_every_poll(make, || {
        async {
            other
                .lock_timeout(DEADLINE)
                .await
                .unwrap()
                .release()
                .await
                .unwrap();
            env.until_waiters(lock.key(), 0).await;
            env.holder(lock.key()).await;
        }
        .boxed()
    })
    .await
    .unwrap_err();
    held.release().await.unwrap();
    assert_nothing_is_left(env, &locks).await;
}

/// The lock comes free a little later each time, while somebody waits who goes away.
pub(super) async fn of_a_wait(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let rival = env.manager().await.named(NAME);
    let lock = locks.named(NAME);
    let mut ended = 0;
    for polls in 1..30 {
        for interruption in [Interruption::After(polls), Interruption::Woken(polls)] {
            let held = rival.lock().await.unwrap();
            let wait = Box::pin(async { lock.lock().await.map(drop) });
            let release = async {
                pause(Duration::from_micros(300) * polls.try_into().unwrap()).await;
                held.release().await.unwrap();
            };
            let (outcome, ()) = join!(interrupted(wait, interruption), release);
            ended += usize::from(outcome.is_some());
            assert_nothing_is_left(env, &locks).await;
        }
    }
    assert!(ended > 0, "none got as far as the lock");
}

pub(super) async fn of_a_session(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let make = || {
        async {
            let session = locks.session().await?;
            let guard = session.lock(&locks.named(NAME)).await?;
            guard.release().await?;
            session.release().await
        }
        .boxed()
    };
    at_every_poll(make, || assert_nothing_is_left(env, &locks).boxed())
        .await
        .unwrap();
}

pub(super) async fn of_a_look_at_the_holders(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let lock = locks.named(NAME);
    let make = || lock.holders().boxed();
    let holders = at_every_poll(make, || assert_nothing_is_left(env, &locks).boxed()).await;
    assert!(holders.unwrap().is_empty());
}
