use std::sync::Arc;

use advisory_core::Session;

use crate::{Env, sync::Gate};

pub(super) async fn reenters_what_the_session_holds(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let lock = locks.named("db:migrate");
    let session = locks.session().await.unwrap();
    let guard = session.lock(&lock).await.unwrap();
    let id = env.holder(lock.key()).await;

    // Outside of the scope the caller is another owner.
    assert!(lock.try_lock().await.unwrap().is_none());
    let inside = lock.with(async || env.holder(lock.key()).await);
    assert_eq!(session.scope(inside).await.unwrap().unwrap(), id);
    let tried = session.scope(lock.try_with(async || ()));
    assert_eq!(tried.await.unwrap().unwrap(), Some(()));
    assert_eq!(env.holder(lock.key()).await, id);
    guard.release().await.unwrap();
    assert_eq!(env.held().await, []);
    session.release().await.unwrap();
}

pub(super) async fn takes_other_keys_on_the_session(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let (held, other) = (locks.named("held"), locks.keyed((1, 2)));
    let session = locks.session().await.unwrap();
    let guard = session.lock(&held).await.unwrap();
    let id = env.holder(held.key()).await;
    let kept = session
        .scope(async {
            let inside = other.with(async || env.holder(other.key()).await);
            assert_eq!(inside.await.unwrap(), id);
            other.lock().await.unwrap()
        })
        .await
        .unwrap();
    assert_eq!(env.holder(other.key()).await, id);
    kept.release().await.unwrap();
    guard.release().await.unwrap();
    session.release().await.unwrap();
}

pub(super) async fn current_is_the_session_of_the_section(env: &Env) {
    let locks = env.manager().await;
    let (outer, inner) = (locks.named("outer"), locks.named("inner"));
    let current = || Session::current().and_then(|session| session.id());
    assert!(Session::current().is_none());
    outer
        .with(async || {
            let id = current().expect("inside").number();
            assert_eq!(env.holder(outer.key()).await, id);
            let nested = inner.with(async || current().expect("inside").number());
            assert_eq!(nested.await.unwrap(), id);
            assert_eq!(current().expect("still inside").number(), id);
        })
        .await
        .unwrap();
    assert!(Session::current().is_none());

    let session = locks.session().await.unwrap();
    assert!(Session::current().is_none());
    let inside = session.scope(async { Session::current().is_some() }).await;
    assert!(inside.unwrap());
    assert!(Session::current().is_none());
    session.release().await.unwrap();
}

pub(super) async fn current_follows_the_innermost_manager(env: &Env) {
    let (locks, others) = (env.manager().await, env.manager().await);
    let (outer, inner) = (locks.named("outer"), others.named("inner"));
    outer
        .with(async || {
            let current = || Session::current().and_then(|session| session.id());
            let ours = current().expect("inside");
            let theirs = inner.with(async || current().expect("inside")).await;
            assert_ne!(theirs.unwrap(), ours);
            assert_eq!(current(), Some(ours));
        })
        .await
        .unwrap();
}

/// A task that is given the section's session is part of the section; one that is not contends
/// like everybody else.
pub(super) async fn makes_a_spawned_task_part_of_the_section(env: &Env) {
    let locks = env.manager().await;
    let (lock, other) = (locks.named("db:migrate"), locks.named("other"));
    lock.with(async || {
        let id = env.holder(lock.key()).await;
        let session = Session::current().expect("inside");
        let part = env.spawn({
            let (lock, other) = (lock.clone(), other.clone());
            async move {
                assert!(Session::current().is_none(), "a task inherits nothing");
                let both = async || {
                    let guard = other.lock().await.unwrap();
                    let ran = lock.try_with(async || ()).await.unwrap();
                    (ran, guard)
                };
                let done = session.scope(both()).await.unwrap();
                session.release().await.unwrap();
                done
            }
        });
        let (ran, guard) = part.await;
        assert_eq!(ran, Some(()));
        assert_eq!(env.holder(other.key()).await, id);
        guard.release().await.unwrap();

        let stranger = env.spawn({
            let lock = lock.clone();
            async move { lock.try_with(async || ()).await.unwrap() }
        });
        assert_eq!(stranger.await, None);
    })
    .await
    .unwrap();
    assert_eq!(env.held().await, []);
}

/// The task goes on when the section is over, and with it the session, but not the lock.
pub(super) async fn outlives_the_section_it_came_from(env: &Env) {
    let locks = env.manager().await;
    let (lock, other) = (locks.named("section"), locks.named("other"));
    let over = Arc::new(Gate::default());
    let (task, id) = lock
        .with(async || {
            let id = env.holder(lock.key()).await;
            let session = Session::current().expect("inside");
            let (other, over) = (other.clone(), Arc::clone(&over));
            let task = env.spawn(async move {
                let guard = session
                    .scope(async {
                        over.passed().await;
                        other.lock().await.unwrap()
                    })
                    .await
                    .unwrap();
                session.release().await.unwrap();
                guard
            });
            (task, id)
        })
        .await
        .unwrap();
    assert_eq!(env.held().await, []);
    over.open();
    let guard = task.await;
    assert_eq!(env.holder(other.key()).await, id);
    guard.release().await.unwrap();
    assert_eq!(env.held().await, []);
}
