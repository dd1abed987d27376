//! Futures that are polled on after the section that they were made in has ended.

use std::{future::Future, pin::Pin};

use futures::future::{Either, select};

use crate::{Env, sync::Gate};

/// Polls a section that cannot end yet until it is inside.
async fn begin<F: Future + Unpin>(section: F, inside: &Gate) -> F {
    match select(section, Box::pin(inside.passed())).await {
        Either::Left(_) => panic!("it cannot have ended"),
        Either::Right(((), section)) => section,
    }
}

/// The context of a call is the one that it is first polled in.
pub(super) async fn unpolled_future_is_a_stranger(env: &Env) {
    let locks = env.manager().await;
    let (outer, inner) = (locks.named("outer"), locks.named("inner"));
    let rival = env.manager().await.named("outer");
    let (late, id) = outer
        .with(async || (outer.lock(), env.holder(outer.key()).await))
        .await
        .unwrap();
    let guard = rival.lock().await.unwrap();
    assert_ne!(env.holder(outer.key()).await, id);
    let waiting = Box::pin(env.until_waiters(outer.key(), 1));
    let late = match select(Box::pin(late), waiting).await {
        Either::Left(_) => panic!("it is held elsewhere"),
        Either::Right(((), late)) => late,
    };
    // An owner like any other, on a session that nobody else uses.
    assert!(outer.try_lock().await.unwrap().is_none());
    guard.release().await.unwrap();
    let late = late.await.unwrap();
    let next = inner.lock().await.unwrap();
    assert_ne!(env.holder(inner.key()).await, env.holder(outer.key()).await);
    next.release().await.unwrap();
    late.release().await.unwrap();
    assert_eq!(env.held().await, []);
}

/// A call whose context has ended opens a session of its own.
pub(super) async fn ended_context_is_none(env: &Env) {
    let (locks, others) = (env.manager().await, env.manager().await);
    let (section, between) = (locks.named("section"), others.named("between"));
    let (inside, go_on) = (Gate::default(), Gate::default());
    let kept = locks.named("kept");
    let (leaked, guard) = section
        .with(async || {
            let leaked = Box::pin(between.with(async || {
                inside.open();
                go_on.passed().await;
                // Between this and the end of the section there is nobody but the other manager.
                let guard = section.lock().await.unwrap();
                let session = env.holder(section.key()).await;
                guard.release().await.unwrap();
                session
            }));
            let leaked = begin(leaked, &inside).await;
            // So the section's session lives on, and would be there to be used.
            (leaked, kept.lock().await.unwrap())
        })
        .await
        .unwrap();
    assert_eq!(env.holders(section.key()).await, []);
    go_on.open();
    let session = leaked.await.unwrap();
    assert_ne!(session, env.holder(kept.key()).await);
    guard.release().await.unwrap();
    assert_eq!(env.held().await, []);
}

/// A context that has ended inside another one leaves the outer one.
pub(super) async fn ended_context_falls_back_to_its_parent(env: &Env) {
    let (locks, others) = (env.manager().await, env.manager().await);
    let (outer, child) = (locks.named("outer"), locks.named("child"));
    let (between, late) = (others.named("between"), locks.named("late"));
    let (inside, go_on) = (Gate::default(), Gate::default());
    outer
        .with(async || {
            let leaked: Pin<Box<dyn Future<Output = _> + Send>> = child
                .with(async || {
                    let leaked = Box::pin(between.with(async || {
                        inside.open();
                        go_on.passed().await;
                        late.with(async || {
                            // It is the outer section's to enter again, too.
                            let again = outer.try_with(async || ()).await.unwrap();
                            (env.holder(late.key()).await, again)
                        })
                        .await
                        .unwrap()
                    }));
                    begin(leaked, &inside).await
                })
                .await
                .unwrap();
            assert_eq!(env.holders(child.key()).await, []);
            go_on.open();
            let (session, again) = leaked.await.unwrap();
            assert_eq!(session, env.holder(outer.key()).await);
            assert_eq!(again, Some(()));
        })
        .await
        .unwrap();
    assert_eq!(env.held().await, []);
}

/// A nested section that is leaked keeps its own lock, on the session that it was entered on.
pub(super) async fn nested_section_goes_on(env: &Env) {
    let locks = env.manager().await;
    let (outer, inner) = (locks.named("outer"), locks.named("inner"));
    let (inside, go_on) = (Gate::default(), Gate::default());
    let (leaked, id) = outer
        .with(async || {
            let leaked = Box::pin(inner.with(async || {
                inside.open();
                go_on.passed().await;
                outer.with(async || env.holder(outer.key()).await).await
            }));
            let leaked = begin(leaked, &inside).await;
            (leaked, env.holder(outer.key()).await)
        })
        .await
        .unwrap();
    assert_eq!(env.holders(outer.key()).await, []);
    assert_eq!(env.holder(inner.key()).await, id);
    go_on.open();
    assert_eq!(leaked.await.unwrap().unwrap(), id);
    assert_eq!(env.held().await, []);
}

/// A nested wait that is kept, and not polled, keeps nobody from the session.
pub(super) async fn nested_wait_goes_on(env: &Env) {
    let locks = env.manager().await;
    let (outer, inner) = (locks.named("outer"), locks.named("inner"));
    let rival = env.manager().await.named("inner");
    let guard = rival.lock().await.unwrap();
    let (mut leaked, id) = outer
        .with(async || {
            let leaked = Box::pin(inner.lock());
            let waiting = Box::pin(env.until_waiters(inner.key(), 1));
            let leaked = match select(leaked, waiting).await {
                Either::Left(_) => panic!("it is held elsewhere"),
                Either::Right(((), leaked)) => leaked,
            };
            (leaked, env.holder(outer.key()).await)
        })
        .await
        .unwrap();
    assert!(futures::poll!(&mut leaked).is_pending());
    assert_eq!(env.holders(outer.key()).await, []);
    guard.release().await.unwrap();
    let guard = leaked.await.unwrap();
    assert_eq!(env.holder(inner.key()).await, id);
    guard.release().await.unwrap();
    assert_eq!(env.held().await, []);
}
