use std::{sync::Arc, time::Duration};

use advisory_core::{Error, LockGuard, LockManager, Result, Stage};
use futures::poll;

use crate::{
    Env,
    sync::{DEADLINE, Gate},
};

const SHORT: Duration = Duration::from_millis(200);

pub(super) async fn refuses_new_work(env: &Env) {
    let locks = env.manager().await;
    let lock = locks.named("imports:run");
    lock.with(async || ()).await.unwrap();
    locks.close().await.unwrap();

    closed(lock.lock().await);
    closed(lock.try_lock().await);
    closed(lock.lock_timeout(Duration::from_secs(1)).await);
    closed(lock.with(async || ()).await);
    closed(lock.try_with(async || ()).await);
    closed(lock.with_timeout(Duration::ZERO, async || ()).await);
    assert_eq!(env.held().await, []);
}

pub(super) async fn refuses_through_derived_handles(env: &Env) {
    let locks = env.manager().await;
    let clone = locks.clone();
    let namespace = locks.namespace("tenant-a");
    locks.close().await.unwrap();

    closed(clone.named("x").lock().await);
    closed(clone.keyed((1, 1)).lock().await);
    closed(namespace.named("x").lock().await);
    closed(namespace.namespace("jobs").named("x").lock().await);
}

pub(super) async fn waits_for_a_guard(env: &Env) {
    let locks = env.manager().await;
    let lock = locks.named("imports:run");
    let guard = lock.lock().await.unwrap();
    let closed = Arc::new(Gate::default());
    let close = env.spawn({
        let (locks, closed) = (locks.clone(), Arc::clone(&closed));
        async move {
            locks.close().await.unwrap();
            closed.open();
        }
    });
    until_closed(&locks).await;
    assert!(!closed.is_open());
    env.holder(lock.key()).await;

    guard.release().await.unwrap();
    close.await;
    assert_eq!(env.held().await, []);
}

pub(super) async fn waits_for_a_section_and_what_it_nests(env: &Env) {
    let locks = env.manager().await;
    let (inside, go_on) = (Arc::new(Gate::default()), Arc::new(Gate::default()));
    let section = env.spawn({
        let (locks, inside, go_on) = (locks.clone(), Arc::clone(&inside), Arc::clone(&go_on));
        async move {
            let nested = locks.named("nested");
            locks
                .named("section")
                .with(async || {
                    inside.open();
                    go_on.passed().await;
                    nested.with(async || "nested").await
                })
                .await?
        }
    });
    inside.passed().await;
    let closed = Arc::new(Gate::default());
    let close = env.spawn({
        let (locks, closed) = (locks.clone(), Arc::clone(&closed));
        async move {
            locks.close().await.unwrap();
            closed.open();
        }
    });
    until_closed(&locks).await;
    assert!(!closed.is_open());
    go_on.open();
    assert_eq!(section.await.unwrap(), "nested");
    close.await;
}

async fn held_elsewhere(env: &Env) -> LockGuard {
    let rival = env.manager().await.named("imports:run");
    rival.lock().await.unwrap()
}

pub(super) async fn waits_for_a_waiter(env: &Env) {
    let locks = env.manager().await;
    let lock = locks.named("imports:run");
    let rival = held_elsewhere(env).await;
    let waiting = env.spawn({
        let lock = lock.clone();
        async move { lock.with(async || "ran").await }
    });
    env.until_waiters(lock.key(), 1).await;
    let mut close = Box::pin(locks.close());
    assert!(poll!(&mut close).is_pending());
    closed(lock.try_lock().await);
    // The wait was there before, and goes on.
    env.until_waiters(lock.key(), 1).await;
    assert!(poll!(&mut close).is_pending());

    rival.release().await.unwrap();
    assert_eq!(waiting.await.unwrap(), "ran");
    close.await.unwrap();
    env.until_empty().await;
}

/// A session in hand is work under way, whether or not it holds anything.
pub(super) async fn waits_for_a_session(env: &Env) {
    let locks = env.manager().await;
    let session = locks.session().await.unwrap();
    let mut close = Box::pin(locks.close());
    assert!(poll!(&mut close).is_pending());
    closed(locks.session().await.map(drop));

    // What is taken on it is no new work.
    let guard = session.lock(&locks.named("imports:run")).await.unwrap();
    let other = locks.named("other");
    let scoped = session.scope(other.with(async || ()));
    scoped.await.unwrap().unwrap();
    guard.release().await.unwrap();
    assert!(poll!(&mut close).is_pending());
    session.release().await.unwrap();
    close.await.unwrap();
}

/// It waits no longer than there is somebody to wait for.
pub(super) async fn waits_for_what_was_cancelled(env: &Env) {
    let locks = env.manager().await;
    let lock = locks.named("imports:run");
    let rival = held_elsewhere(env).await;
    let waiting = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().await.map(drop) }
    });
    env.until_waiters(lock.key(), 1).await;
    let mut close = Box::pin(locks.close());
    assert!(poll!(&mut close).is_pending());
    assert!(waiting.cancel().await.is_none());
    close.await.unwrap();
    env.until_waiters(lock.key(), 0).await;
    rival.release().await.unwrap();
    env.until_empty().await;
}

pub(super) async fn of_one_that_was_never_used(env: &Env) {
    let locks = env.manager().await;
    locks.close().await.unwrap();
    closed(locks.named("imports:run").lock().await);
    assert!(env.sessions().await.is_empty());
    env.manager()
        .await
        .close_timeout(Duration::ZERO)
        .await
        .unwrap();
}

pub(super) async fn at_the_same_time_is_fine(env: &Env) {
    let locks = env.manager().await;
    let guard = locks.named("imports:run").lock().await.unwrap();
    let closes = [(); 3].map(|()| {
        let locks = locks.clone();
        env.spawn(async move { locks.close().await })
    });
    until_closed(&locks).await;
    env.holder(guard.key()).await;
    guard.release().await.unwrap();
    for close in closes {
        close.await.unwrap();
    }
}

pub(super) async fn dropped_half_way_can_be_called_again(env: &Env) {
    let locks = env.manager().await;
    let lock = locks.named("imports:run");
    let guard = lock.lock().await.unwrap();
    let mut close = Box::pin(locks.close());
    assert!(poll!(&mut close).is_pending());
    drop(close);
    closed(lock.lock().await);

    let mut close = Box::pin(locks.close());
    assert!(poll!(&mut close).is_pending());
    env.holder(lock.key()).await;
    guard.release().await.unwrap();
    close.await.unwrap();
    locks.close().await.unwrap();
}

pub(super) async fn late_names_what_is_held(env: &Env) {
    let locks = env.manager().await;
    let lock = locks.namespace("tenant-a").named("digest").shared();
    let guard = lock.lock().await.unwrap();
    let session = env.held().await[0].session;
    for timeout in [SHORT, Duration::ZERO] {
        match locks.close_timeout(timeout).await {
            Err(Error::Timeout {
                holders,
                stage,
                waited,
                ..
            }) => {
                assert_eq!(stage, Stage::Close);
                assert!(waited >= timeout && waited < DEADLINE, "{waited:?}");
                assert_eq!(holders.len(), 1);
                assert_eq!(holders[0].key, lock.key());
                assert_eq!(holders[0].mode, lock.mode());
                assert_eq!(holders[0].session.number(), session);
            }
            other => panic!("there is a guard: {other:?}"),
        }
        closed(lock.try_lock().await);
        assert_eq!(env.held().await.len(), 1, "what is under way goes on");
    }
    guard.release().await.unwrap();
    locks.close_timeout(DEADLINE).await.unwrap();
}

/// A manager that was never closed leaves nothing undone.
pub(super) async fn is_not_needed_for_guards_to_work(env: &Env) {
    let locks = env.manager().await;
    let lock = locks.named("imports:run");
    let guard = lock.lock().await.unwrap();
    drop((locks, lock));
    let key = guard.key();
    env.holder(key).await;
    guard.release().await.unwrap();
    assert_eq!(env.holders(key).await, []);
}

pub(super) async fn inside_a_section_is_refused(env: &Env) {
    let locks = env.manager().await;
    let lock = locks.named("imports:run");
    let refused = lock.with(async || locks.close().await).await.unwrap();
    assert!(
        matches!(refused, Err(Error::CloseInsideLock)),
        "{refused:?}"
    );
    lock.with(async || ()).await.unwrap();
    locks.close().await.unwrap();
    closed(lock.lock().await);
}

pub(super) async fn twice_is_fine(env: &Env) {
    let locks = env.manager().await;
    locks.named("imports:run").with(async || ()).await.unwrap();
    locks.close().await.unwrap();
    locks.close().await.unwrap();
    let (one, other) = futures::join!(locks.close(), locks.close());
    one.and(other).unwrap();
}

pub(super) async fn of_one_manager_leaves_others_open(env: &Env) {
    let (locks, other) = (env.manager().await, env.manager().await);
    locks.named("x").with(async || ()).await.unwrap();
    other.named("x").with(async || ()).await.unwrap();
    locks.close().await.unwrap();
    other.named("x").with(async || ()).await.unwrap();
}

/// Returns when `close` has begun: from then on new work is refused.
async fn until_closed(locks: &LockManager) {
    loop {
        match locks.named("is it closed?").try_lock().await {
            Err(Error::Closed) => return,
            Ok(guard) => drop(guard),
            Err(error) => panic!("{error:?}"),
        }
        crate::sync::pause(Duration::from_millis(5)).await;
    }
}

fn closed<T: std::fmt::Debug>(result: Result<T>) {
    assert!(matches!(result, Err(Error::Closed)), "{result:?}");
}
