use std::{panic::AssertUnwindSafe, sync::Arc};

use futures::{FutureExt, future::pending};

use crate::{Env, sync::Gate};

pub(super) async fn return_their_value(env: &Env) {
    let lock = env.manager().await.named("tenant:7");
    assert_eq!(lock.with(async || 42).await.unwrap(), 42);
    assert_eq!(lock.with(|| async { "plain" }).await.unwrap(), "plain");
}

pub(super) async fn hold_the_lock_while_they_run(env: &Env) {
    let lock = env.manager().await.named("tenant:7");
    lock.with(async || env.holder(lock.key()).await)
        .await
        .unwrap();
    assert_eq!(env.held().await, []);
}

pub(super) async fn see_their_guard(env: &Env) {
    let locks = env.manager().await;
    for lock in [
        locks.named("tenant:7"),
        locks.keyed((7, 7)).shared(),
        locks.namespace("tenant-a").named("digest"),
    ] {
        let seen = lock.with_guard(async |guard| {
            assert_eq!(env.held().await.len(), 1);
            (guard.key(), guard.mode(), guard.is_lost())
        });
        let seen = seen.await.unwrap();
        assert_eq!(seen, (lock.key(), lock.mode(), false));
        assert_eq!(env.held().await, []);
    }
}

pub(super) async fn free_it_on_an_error(env: &Env) {
    let lock = env.manager().await.named("tenant:7");
    let failed = lock
        .with(async || {
            let number: i32 = "seven".parse()?;
            Ok::<_, std::num::ParseIntError>(number)
        })
        .await;
    assert!(failed.unwrap().is_err());
    // Before anything else is asked of the server: the release was awaited.
    assert_eq!(env.held().await, []);
    lock.with(async || ()).await.unwrap();
}

pub(super) async fn free_it_on_a_panic(env: &Env) {
    let lock = env.manager().await.named("tenant:7");
    let section = lock.with(async || {
        env.holder(lock.key()).await;
        std::panic::panic_any("on purpose")
    });
    let outcome: Result<_, _> = AssertUnwindSafe(section).catch_unwind().await;
    let panic = match outcome {
        Err(panic) => panic,
        Ok(result) => result.unwrap(),
    };
    assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
    env.until_free(lock.key()).await;
    lock.with(async || ()).await.unwrap();
    env.until_empty().await;
}

pub(super) async fn free_it_when_dropped(env: &Env) {
    let lock = env.manager().await.named("tenant:7");
    let inside = Arc::new(Gate::default());
    let section = env.spawn({
        let (lock, inside) = (lock.clone(), Arc::clone(&inside));
        async move {
            lock.with(async || {
                inside.open();
                pending::<()>().await;
            })
            .await
        }
    });
    inside.passed().await;
    env.holder(lock.key()).await;
    assert!(section.cancel().await.is_none());
    env.until_free(lock.key()).await;
    lock.with(async || ()).await.unwrap();
}

pub(super) async fn borrow_from_their_caller(env: &Env) {
    let lock = env.manager().await.named("tenant:7");
    let mut visits = Vec::new();
    let name = String::from("borrowed");
    lock.with(async || visits.push(name.as_str()))
        .await
        .unwrap();
    let length = lock.with(|| async { name.len() }).await.unwrap();
    assert_eq!((visits, length), (vec!["borrowed"], 8));
}

pub(super) async fn are_send_with_a_plain_closure(env: &Env) {
    let lock = env.manager().await.named("tenant:7");
    let ran = env.spawn(async move {
        let text = String::from("ran");
        let entered = lock.with(|| async { text.clone() }).await.unwrap();
        let tried = lock.try_with(|| async { text.clone() }).await.unwrap();
        (entered, tried)
    });
    assert_eq!(ran.await, ("ran".into(), Some("ran".into())));
}

pub(super) async fn are_send_with_an_async_closure(env: &Env) {
    let lock = env.manager().await.named("tenant:7");
    let ran = env.spawn(async move {
        let text = String::from("ran");
        let entered = lock.with(async || text.clone()).await.unwrap();
        let tried = lock.try_with(async || text.clone()).await.unwrap();
        (entered, tried)
    });
    assert_eq!(ran.await, ("ran".into(), Some("ran".into())));
}
