//! What is dropped on a session that nobody uses afterwards.

use std::time::Duration;

use futures::{FutureExt, poll};

use crate::Env;

/// Of Drop's promise.
const BOUND: Duration = Duration::from_secs(1);

pub(super) async fn a_dropped_guard_is_unlocked(env: &Env) {
    let locks = env.manager().await;
    let session = locks.session().await.unwrap();
    let lock = locks.named("imports:run");
    // The first unlock on a connection has to be prepared, and the later ones do not.
    for _ in 0..3 {
        let guard = session.lock(&lock).await.unwrap();
        drop(guard);
        env.until_free_within(BOUND, lock.key()).await;
    }
    session.release().await.unwrap();
}

pub(super) async fn several_dropped_guards_are_unlocked(env: &Env) {
    let locks = env.manager().await;
    let session = locks.session().await.unwrap();
    let kept = session.lock(&locks.named("kept")).await.unwrap();
    let mut guards = Vec::new();
    for name in ["a", "b", "c", "d"] {
        guards.push(session.lock(&locks.named(name)).await.unwrap());
    }
    let keys: Vec<_> = guards.iter().map(|guard| guard.key()).collect();
    drop(guards);
    for key in keys {
        env.until_free_within(BOUND, key).await;
    }
    env.holder(kept.key()).await;
    kept.release().await.unwrap();
    session.release().await.unwrap();
}

pub(super) async fn a_cancelled_wait_keeps_nothing(env: &Env) {
    let locks = env.manager().await;
    let session = locks.session().await.unwrap();
    let kept = session.lock(&locks.named("kept")).await.unwrap();
    let lock = locks.named("imports:run");
    let holder = env.manager().await.named("imports:run");

    for _ in 0..3 {
        let held = holder.lock().await.unwrap();
        {
            let mut waiting = session.lock(&lock).boxed();
            assert!(poll!(&mut waiting).is_pending());
            while env.waiters(lock.key()).await == 0 {
                assert!(poll!(&mut waiting).is_pending());
            }
        }
        // Within the slice, so the server grants it to a session where nobody wants it any more.
        held.release().await.unwrap();
        env.until_free_within(BOUND, lock.key()).await;
    }
    env.holder(kept.key()).await;
    kept.release().await.unwrap();
    session.release().await.unwrap();
}

pub(super) async fn a_cancelled_wait_leaves_the_queue(env: &Env) {
    let locks = env.manager().await;
    let session = locks.session().await.unwrap();
    let kept = session.lock(&locks.named("kept")).await.unwrap();
    let lock = locks.named("imports:run");
    let held = env.manager().await.named("imports:run").lock().await;
    {
        let mut waiting = session.lock(&lock).boxed();
        while env.waiters(lock.key()).await == 0 {
            assert!(poll!(&mut waiting).is_pending());
        }
    }
    env.until_waiters(lock.key(), 0).await;
    held.unwrap().release().await.unwrap();
    kept.release().await.unwrap();
    session.release().await.unwrap();
}
