use std::{sync::Arc, time::Duration};

use advisory_core::Error;
use futures::future::{Either, select};

use crate::{
    Env,
    sync::{DEADLINE, Gate, pause},
};

const SHORT: Duration = Duration::from_millis(100);

pub(super) async fn same_key_is_reentered(env: &Env) {
    let lock = env.manager_with_pool_of(1).await.named("tenant:7");
    lock.with(async || {
        let session = env.holder(lock.key()).await;
        lock.with(async || {
            assert_eq!(env.holder(lock.key()).await, session);
            assert_eq!(env.held().await.len(), 1);
        })
        .await
        .unwrap();
        assert_eq!(env.holder(lock.key()).await, session);
    })
    .await
    .unwrap();
    assert_eq!(env.held().await, []);
}

pub(super) async fn same_key_is_free_after_the_last(env: &Env) {
    let locks = env.manager().await;
    let lock = locks.named("tenant:7");
    let rival = env.manager().await.named("tenant:7");
    locks
        .named("around")
        .with(async || {
            let mut guards = Vec::new();
            for _ in 0..3 {
                guards.push(lock.lock().await.unwrap());
            }
            for guard in guards {
                assert!(rival.try_lock().await.unwrap().is_none());
                env.holder(lock.key()).await;
                guard.release().await.unwrap();
            }
            // Were there a second count on the server, this would miss.
            let guard = rival.try_lock().await.unwrap().expect("the last is gone");
            guard.release().await.unwrap();
        })
        .await
        .unwrap();
    assert_eq!(env.held().await, []);
}

pub(super) async fn try_reenters(env: &Env) {
    let lock = env.manager().await.named("tenant:7");
    let inner = lock
        .with(async || {
            let ran = lock.try_with(async || lock.try_lock().await).await;
            let guard = ran.unwrap().expect("it is ours").unwrap();
            guard.expect("it is ours").release().await.unwrap();
            env.holder(lock.key()).await
        })
        .await;
    inner.unwrap();
    assert_eq!(env.held().await, []);
}

pub(super) async fn other_key_is_on_the_same_session(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let (outer, inner) = (locks.named("outer"), locks.keyed((1, 2)));
    outer
        .with(async || {
            let session = env.holder(outer.key()).await;
            let inside = inner.with(async || env.holder(inner.key()).await).await;
            assert_eq!(inside.unwrap(), session);
            assert_eq!(env.holders(inner.key()).await, []);
            assert_eq!(env.holder(outer.key()).await, session);
        })
        .await
        .unwrap();
    assert_eq!(env.held().await, []);
}

/// The section and the stranger take turns on the threads of the runtime.
pub(super) async fn spawned_task_is_a_stranger(env: &Env) {
    let lock = env.manager().await.named("tenant:7");
    for _ in 0..20 {
        let inside = Arc::new(Gate::default());
        let stranger = env.spawn({
            let (lock, inside) = (lock.clone(), Arc::clone(&inside));
            async move {
                inside.passed().await;
                lock.try_with(async || ()).await.unwrap()
            }
        });
        let section = env.spawn({
            let lock = lock.clone();
            async move {
                lock.with(async || {
                    inside.open();
                    stranger.await
                })
                .await
            }
        });
        assert_eq!(section.await.unwrap(), None);
    }
}

pub(super) async fn managers_do_not_share(env: &Env) {
    let lock = env.manager().await.named("tenant:7");
    let others = env.manager().await;
    let rival = others.named("tenant:7");
    lock.with(async || {
        let session = env.holder(lock.key()).await;
        assert!(rival.try_lock().await.unwrap().is_none());
        match rival.lock_timeout(SHORT).await {
            Err(Error::Timeout { holders, .. }) => assert_eq!(holders[0].session.number(), session),
            other => panic!("should have timed out: {other:?}"),
        }
        let other = others.named("other").lock().await.unwrap();
        assert_ne!(env.holder(other.key()).await, session);
        other.release().await.unwrap();
    })
    .await
    .unwrap();
}

pub(super) async fn guard_outlives_its_section(env: &Env) {
    let locks = env.manager().await;
    let (outer, inner) = (locks.named("outer"), locks.named("inner"));
    let guard = outer
        .with(async || inner.lock().await.unwrap())
        .await
        .unwrap();
    assert_eq!(env.holders(outer.key()).await, []);
    let session = env.holder(inner.key()).await;

    // Outside the section it is an owner like any other.
    assert!(inner.try_lock().await.unwrap().is_none());
    let next = outer.lock().await.unwrap();
    assert_ne!(env.holder(outer.key()).await, session);
    next.release().await.unwrap();
    guard.release().await.unwrap();
    assert_eq!(env.held().await, []);
}

pub(super) async fn cancelled_wait_keeps_the_outer_lock(env: &Env) {
    let locks = env.manager().await;
    let (outer, inner) = (locks.named("outer"), locks.named("inner"));
    let guard = env.manager().await.named("inner").lock().await.unwrap();
    outer
        .with(async || {
            let session = env.holder(outer.key()).await;
            for round in 0..20 {
                let limit = Box::pin(pause(Duration::from_millis(round)));
                let wait = Box::pin(inner.with(async || ()));
                match select(wait, limit).await {
                    Either::Left((entered, _)) => panic!("it is held elsewhere: {entered:?}"),
                    Either::Right(((), wait)) => drop(wait),
                }
                assert_eq!(env.holder(outer.key()).await, session);
            }
            env.until_waiters(inner.key(), 0).await;
        })
        .await
        .unwrap();
    let key = guard.key();
    guard.release().await.unwrap();
    env.until_empty().await;
    assert_eq!(env.holders(key).await, []);
}

pub(super) async fn pool_of_one_is_enough(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| locks.named(name));
    a.with(async || {
        let id = env.holder(a.key()).await;
        let guard = b.lock().await.unwrap();
        let inside = c.with_timeout(DEADLINE, async || {
            let tried = d.try_with(async || env.held().await);
            tried.await.unwrap().expect("it is free")
        });
        let held = inside.await.unwrap();
        assert_eq!(held.len(), 4);
        assert!(held.iter().all(|lock| lock.session == id), "{held:?}");
        assert_eq!(b.holders().await.unwrap().len(), 1);
        guard.release().await.unwrap();
        assert_eq!(env.sessions().await, [id]);
    })
    .await
    .unwrap();
    assert_eq!(env.held().await, []);
}

/// A key is what counts, not the handle that it comes from.
pub(super) async fn same_key_of_another_handle_is_reentered(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let lock = locks.namespace("tenant-a").namespace("jobs").named("x");
    lock.with(async || {
        let handles = [
            locks
                .clone()
                .namespace("tenant-a")
                .namespace("jobs")
                .named("x"),
            locks.keyed(lock.key()),
            lock.clone(),
        ];
        for handle in handles {
            let ran = handle.try_with(async || env.holder(lock.key()).await);
            ran.await.unwrap().expect("it is ours");
            handle.lock().await.unwrap().release().await.unwrap();
            env.holder(lock.key()).await;
        }
    })
    .await
    .unwrap();
    assert_eq!(env.held().await, []);
}
