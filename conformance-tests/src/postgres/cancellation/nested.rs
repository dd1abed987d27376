use std::{env::var, time::Duration};

use advisory_core::{LockManager, Result};
use futures::future::{Either, select};

use super::{
    TRY_LOCK, UNLOCK, WAIT, assert_nothing_is_left, moments, moments_of_batch, until_held,
};
use crate::{
    Task,
    postgres::{Point, ProxiedEnv, proxied::BOUND},
    sync::pause,
};

const OUTER: &str = "outer";
const INNER: &str = "inner";

/// Each wait is cancelled at another moment, while others of its like go on.
pub(super) async fn waits_keep_the_outer_lock(env: &ProxiedEnv) {
    const TASKS: u64 = 5;

    let rounds = var("ADVISORY_NESTED_ROUNDS").map_or(5, |rounds| rounds.parse().unwrap());
    let rival = env.manager().await.named(INNER).lock().await.unwrap();
    let locks = env.proxied_with(5, Duration::from_secs(10)).await;
    let sections: Vec<Task<()>> = (0..TASKS)
        .map(|task| {
            let locks = locks.clone();
            env.spawn(async move {
                let outer = locks.named(format!("{OUTER}:{task}"));
                outer
                    .with(async || {
                        for round in 0..rounds {
                            let limit = Duration::from_millis(7 * (TASKS * round + task) % 50);
                            wait_no_longer_than(limit, &locks).await;
                        }
                    })
                    .await
                    .unwrap();
            })
        })
        .collect();
    let mut sessions = Vec::new();
    for task in 0..TASKS {
        sessions.push(until_held(env, locks.named(format!("{OUTER}:{task}")).key()).await);
    }
    // A section that had lost its lock would have said so at its end.
    for (task, section) in sections.into_iter().enumerate() {
        section.await;
        env.until_free_within(BOUND, locks.named(format!("{OUTER}:{task}")).key())
            .await;
    }
    for session in sessions {
        assert!(
            env.sessions().await.contains(&session),
            "a session was lost"
        );
    }
    env.until_waiters(rival.key(), 0).await;
    rival.release().await.unwrap();
    assert_nothing_is_left(env, &locks, 5).await;
}

/// The server grants the inner lock to a call that has gone.
pub(super) async fn grants_are_given_back(env: &ProxiedEnv) {
    let locks = env.proxied_with(1, Duration::from_secs(10)).await;
    let (outer, inner) = (locks.named(OUTER), locks.named(INNER));
    let rival = env.manager().await.named(INNER);
    outer
        .with(async || {
            let session = env.holder(outer.key()).await;
            for _ in 0..5 {
                let held = rival.lock().await.unwrap();
                let stop = env.proxy().stop(Point::execute(WAIT).unanswered());
                let wait = Box::pin(inner.lock());
                let Either::Right(((), wait)) = select(wait, Box::pin(stop.reached())).await else {
                    panic!("it is held elsewhere");
                };
                env.until_waiters(inner.key(), 1).await;
                held.release().await.unwrap();
                assert_eq!(until_held(env, inner.key()).await, session);
                drop(wait);
                stop.go_on();
                env.until_free_within(BOUND, inner.key()).await;
                assert!(env.is_held_by(outer.key(), session).await);
            }
        })
        .await
        .unwrap();
    assert_nothing_is_left(env, &locks, 1).await;
}

pub(super) async fn tries_are_given_back(env: &ProxiedEnv) {
    let tries = moments_of_batch(TRY_LOCK);
    let waits = moments_of_batch(WAIT);
    for (point, held_elsewhere) in
        (tries.into_iter().map(|point| (point, false))).chain(waits.map(|point| (point, true)))
    {
        let locks = env.proxied_with(1, Duration::from_secs(10)).await;
        let (outer, inner) = (locks.named(OUTER), locks.named(INNER));
        let rival = match held_elsewhere {
            true => Some(env.manager().await.named(INNER).lock().await.unwrap()),
            false => None,
        };
        outer
            .with(async || {
                let session = env.holder(outer.key()).await;
                let stop = env.proxy().stop(point);
                let attempt = Box::pin(inner.lock());
                let reached = select(attempt, Box::pin(stop.reached())).await;
                let Either::Right(((), attempt)) = reached else {
                    panic!("it ended before {point:?}");
                };
                drop(attempt);
                stop.go_on();
                // Another key, on the session that has an unfinished statement.
                locks.named("other").with(async || ()).await.unwrap();
                env.until_waiters(inner.key(), 0).await;
                let inner = env.holders(inner.key()).await;
                assert!(inner.iter().all(|(holder, _)| *holder != session));
                assert!(env.is_held_by(outer.key(), session).await);
            })
            .await
            .unwrap();
        if let Some(rival) = rival {
            rival.release().await.unwrap();
        }
        assert_nothing_is_left(env, &locks, 1).await;
    }
}

pub(super) async fn releases_keep_the_outer_lock(env: &ProxiedEnv) {
    for point in moments(UNLOCK) {
        let locks = env.proxied_with(1, Duration::from_secs(10)).await;
        let (outer, inner) = (locks.named(OUTER), locks.named(INNER));
        outer
            .with(async || {
                let session = env.holder(outer.key()).await;
                let guard = inner.lock().await.unwrap();
                let stop = env.proxy().stop(point);
                let reached = select(Box::pin(guard.release()), Box::pin(stop.reached())).await;
                let Either::Right(((), release)) = reached else {
                    panic!("it ended before {point:?}");
                };
                drop(release);
                stop.go_on();
                env.until_free_within(BOUND, inner.key()).await;
                assert!(env.is_held_by(outer.key(), session).await);
            })
            .await
            .unwrap();
        assert_nothing_is_left(env, &locks, 1).await;
    }
}

async fn wait_no_longer_than(limit: Duration, locks: &LockManager) {
    let inner = locks.named(INNER);
    let wait = Box::pin(inner.with(async || ()));
    let ended: Either<(Result<()>, _), _> = select(wait, Box::pin(pause(limit))).await;
    match ended {
        Either::Left((entered, _)) => panic!("it is held elsewhere: {entered:?}"),
        Either::Right(((), wait)) => drop(wait),
    }
}
