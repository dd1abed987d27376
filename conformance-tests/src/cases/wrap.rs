use std::{panic::AssertUnwindSafe, sync::Arc};

use advisory_core::Error;
use futures::FutureExt;

use crate::{
    Env,
    sync::{DEADLINE, Gate, RacyCounter},
};

pub(super) async fn returns_what_the_function_does(env: &Env) {
    let lock = env.manager().await.named("search:index");
    let refresh = lock.wrap(async || 3);
    assert_eq!(refresh().await.unwrap(), 3);
    assert_eq!(refresh().await.unwrap(), 3);

    let parse = lock.wrap_with(async |text: &str| text.parse::<i32>());
    assert_eq!(parse("7").await.unwrap(), Ok(7));
    // An error of the function's own is a value like any other.
    assert!(parse("seven").await.unwrap().is_err());
    assert_eq!(env.held().await, []);
}

pub(super) async fn holds_the_lock_in_each_call(env: &Env) {
    let lock = env.manager().await.named("search:index").shared();
    let rival = env.manager().await.named("search:index");
    let (inside, go_on) = (Arc::new(Gate::default()), Arc::new(Gate::default()));
    let refresh = lock.wrap({
        let (inside, go_on) = (Arc::clone(&inside), Arc::clone(&go_on));
        move || {
            let (inside, go_on) = (Arc::clone(&inside), Arc::clone(&go_on));
            async move {
                inside.open();
                go_on.passed().await;
            }
        }
    });
    assert_eq!(env.held().await, [], "nothing happens before a call");
    let call = env.spawn(refresh());
    inside.passed().await;
    let holders = env.holders(lock.key()).await;
    assert_eq!(holders.len(), 1);
    assert_eq!(holders[0].1, lock.mode());
    assert!(rival.try_lock().await.unwrap().is_none());
    go_on.open();
    call.await.unwrap();
    assert_eq!(env.held().await, []);
}

pub(super) async fn calls_of_clones_exclude_each_other(env: &Env) {
    const TASKS: usize = 6;
    const CALLS: usize = 5;

    let counter = Arc::new(RacyCounter::default());
    let lock = env.manager().await.named("counter");
    let increment = lock.wrap({
        let counter = Arc::clone(&counter);
        move || {
            let counter = Arc::clone(&counter);
            async move { counter.increment().await }
        }
    });
    let tasks = [(); TASKS].map(|()| {
        let increment = increment.clone();
        env.spawn(async move {
            for _ in 0..CALLS {
                increment().await.unwrap();
            }
        })
    });
    for task in tasks {
        task.await;
    }
    assert_eq!(counter.value(), TASKS * CALLS);
}

pub(super) async fn frees_the_lock_on_a_panic(env: &Env) {
    let lock = env.manager().await.named("search:index");
    let fail = lock.wrap_with(async |fail: bool| assert!(!fail, "on purpose"));
    let panic = AssertUnwindSafe(fail(true)).catch_unwind().await;
    let panic = panic.expect_err("it panics");
    assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
    env.until_free(lock.key()).await;
    fail(false).await.unwrap();
    assert_eq!(env.held().await, []);
}

pub(super) async fn is_refused_after_close(env: &Env) {
    let locks = env.manager().await;
    let ran = Arc::new(Gate::default());
    let refresh = locks.named("search:index").wrap({
        let ran = Arc::clone(&ran);
        move || {
            ran.open();
            async {}
        }
    });
    locks.close().await.unwrap();
    let refused = refresh().await;
    assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
    assert!(!ran.is_open());
}

pub(super) async fn works_in_a_namespace(env: &Env) {
    let locks = env.manager().await;
    let digest = |locks: &advisory_core::LockManager| locks.namespace("tenant-a").named("digest");
    let lock = digest(&locks);
    let rival = digest(&env.manager().await);
    let around = locks.named("digest");
    let tried = lock.wrap(move || {
        let rival = rival.clone();
        async move { rival.try_lock().await.unwrap().is_some() }
    });
    // The same name outside of the namespace is another lock.
    let guard = around.lock().await.unwrap();
    let call = env.spawn(tried());
    assert!(!call.await.unwrap(), "the lock is held");
    guard.release().await.unwrap();
}

/// A call inside a section is part of it, and so is what the function does.
pub(super) async fn joins_the_section_around_it(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let lock = locks.named("search:index");
    let inner = locks.named("inner");
    let rebuild = lock.wrap({
        let inner = inner.clone();
        move || {
            let inner = inner.clone();
            async move { inner.lock_timeout(DEADLINE).await }
        }
    });
    lock.with(async || {
        let id = env.holder(lock.key()).await;
        let guard = rebuild().await.unwrap().unwrap();
        assert_eq!(env.holder(inner.key()).await, id);
        guard.release().await.unwrap();
        assert_eq!(env.holder(lock.key()).await, id);
    })
    .await
    .unwrap();
    assert_eq!(env.held().await, []);
}
