use std::{sync::Arc, thread};

use futures::future::{Either, pending, select};

use super::{UNLOCK, WAIT, assert_nothing_is_left, until_disconnected, until_held};
use crate::{
    postgres::{Point, ProxiedEnv, proxied::BOUND},
    sync::{DEADLINE, Gate},
};

const NAME: &str = "imports:run";

pub(super) async fn a_waiter_is_dropped(env: &ProxiedEnv) {
    let locks = env.proxied(1).await;
    let rival = env.manager().await.named(NAME).lock().await.unwrap();
    for _ in 0..3 {
        let lock = locks.named(NAME);
        let key = lock.key();
        let attempt = async move { lock.lock().await.map(drop) };
        drop_outside(attempt, env.until_waiters(key, 1)).await;
        env.until_waiters(key, 0).await;
    }
    rival.release().await.unwrap();
    assert_nothing_is_left(env, &locks, 1).await;
}

pub(super) async fn a_section_is_dropped(env: &ProxiedEnv) {
    let locks = env.proxied(1).await;
    for _ in 0..3 {
        let lock = locks.named(NAME);
        let key = lock.key();
        let inside = Arc::new(Gate::default());
        let section = {
            let inside = Arc::clone(&inside);
            async move {
                let section = async || {
                    inside.open();
                    pending::<()>().await;
                };
                lock.with(section).await
            }
        };
        drop_outside(section, inside.passed()).await;
        env.until_free_within(BOUND, key).await;
        assert_nothing_is_left(env, &locks, 1).await;
    }
}

pub(super) async fn a_release_is_dropped(env: &ProxiedEnv) {
    for point in [Point::execute(UNLOCK), Point::execute(UNLOCK).unanswered()] {
        let locks = env.proxied(1).await;
        let guard = locks.named(NAME).lock().await.unwrap();
        let key = guard.key();
        let stop = env.proxy().stop(point);
        drop_outside(guard.release(), stop.reached()).await;
        stop.go_on();
        env.until_free_within(BOUND, key).await;
        assert_nothing_is_left(env, &locks, 1).await;
    }
}

/// In every order: the guards first, or the session.
pub(super) async fn a_session_and_its_guards_are_dropped(env: &ProxiedEnv) {
    let locks = env.proxied(1).await;
    for session_first in [false, true] {
        let session = locks.session().await.unwrap();
        let mut guards = Vec::new();
        for name in ["one", "two", "three"] {
            guards.push(session.lock(&locks.named(name)).await.unwrap());
        }
        let dropped = guards.remove(0);
        let key = dropped.key();
        outside(move || drop(dropped));
        env.until_free_within(BOUND, key).await;
        for guard in &guards {
            env.holder(guard.key()).await;
        }
        outside(move || {
            if session_first {
                drop(session);
                drop(guards);
            } else {
                drop(guards);
                drop(session);
            }
        });
        assert_nothing_is_left(env, &locks, 1).await;
    }
}

/// The server grants a lock to a call that has gone, on a session that nobody uses.
pub(super) async fn a_wait_on_an_idle_session_is_dropped(env: &ProxiedEnv) {
    let locks = env.proxied_with(1, DEADLINE).await;
    let wanted = locks.named(NAME);
    let session = locks.session().await.unwrap();
    let kept = session.lock(&locks.named("kept")).await.unwrap();
    let number = env.holder(kept.key()).await;
    for _ in 0..3 {
        let rival = env.manager().await.named(NAME).lock().await.unwrap();
        let stop = env.proxy().stop(Point::execute(WAIT).unanswered());
        let wait = {
            let (session, wanted) = (session.clone(), wanted.clone());
            async move { session.lock(&wanted).await.map(drop) }
        };
        drop_outside(wait, async {
            stop.reached().await;
            env.until_waiters(wanted.key(), 1).await;
            rival.release().await.unwrap();
            assert_eq!(until_held(env, wanted.key()).await, number);
        })
        .await;
        stop.go_on();
        env.until_free_within(BOUND, wanted.key()).await;
        assert_eq!(env.holder(kept.key()).await, number);
    }
    kept.release().await.unwrap();
    session.release().await.unwrap();
    assert_nothing_is_left(env, &locks, 1).await;
}

/// Its guards stay valid, and the last of them ends its pool, if nobody else has a handle of it.
pub(super) async fn a_manager_is_dropped(env: &ProxiedEnv) {
    for owned in [false, true] {
        let locks = if owned {
            env.owned(2, DEADLINE).await
        } else {
            env.proxied_with(2, DEADLINE).await
        };
        // One connection has a lock on it, and one is in the pool.
        let guard = locks.named(NAME).lock().await.unwrap();
        locks.named("other").with(async || ()).await.unwrap();
        let key = guard.key();
        outside(move || drop(locks));
        let session = env.holder(key).await;
        outside(move || drop(guard));
        env.until_free_within(BOUND, key).await;
        env.until_ended(session).await;
        until_disconnected(BOUND, env).await;
    }
}

/// Polls a future here until it is where it should be, and drops it on a thread without a runtime.
async fn drop_outside<T>(
    future: impl Future<Output = T> + Send + 'static,
    there: impl Future<Output = ()>,
) {
    match select(Box::pin(future), Box::pin(there)).await {
        Either::Left(_) => panic!("it ended before it was there"),
        Either::Right(((), future)) => outside(move || drop(future)),
    }
}

fn outside(work: impl FnOnce() + Send + 'static) {
    thread::spawn(work).join().expect("no drop panics");
}
