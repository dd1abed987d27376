use std::{sync::Arc, time::Duration};

use advisory_core::{Error, Result};

use crate::{Env, sync::Gate};

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
async fn until_closed(locks: &advisory_core::LockManager) {
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
