use std::{sync::Arc, time::Duration};

use advisory_core::{Error, Lock, Result};

use crate::{
    Env, Task,
    outcome::victims,
    sync::{DEADLINE, Gate, Rendezvous},
};

pub(super) async fn of_two_has_one_victim(env: &Env) {
    let both_inside = Arc::new(Rendezvous::of(2));
    let (one, other) = (env.manager().await, env.manager().await);
    let one = cross(env, &both_inside, one.named("a"), one.named("b"));
    let other = cross(env, &both_inside, other.named("b"), other.named("a"));

    let (one, other) = (one.await, other.await);
    let (victim, winner) = if one.is_err() {
        (one, other)
    } else {
        (other, one)
    };
    match victim {
        Err(Error::Deadlock { .. }) => {}
        other => panic!("one of the two should have been told: {other:?}"),
    }
    winner.expect("the other one goes on");
    env.until_empty().await;
}

/// Takes one lock, meets the other task, and takes the other's.
fn cross(env: &Env, both_inside: &Arc<Rendezvous>, outer: Lock, inner: Lock) -> Task<Result<()>> {
    let both_inside = Arc::clone(both_inside);
    env.spawn(async move {
        outer
            .with(async || {
                both_inside.reached().await;
                inner.with_timeout(DEADLINE, async || ()).await
            })
            .await?
    })
}

pub(super) async fn of_three_has_one_victim(env: &Env) {
    let all_inside = Arc::new(Rendezvous::of(3));
    let mut tasks = Vec::new();
    for (outer, inner) in [("a", "b"), ("b", "c"), ("c", "a")] {
        let locks = env.manager().await;
        tasks.push(cross(
            env,
            &all_inside,
            locks.named(outer),
            locks.named(inner),
        ));
    }
    assert_eq!(victims(tasks).await, 1);
    env.until_empty().await;
}

/// Sections are not needed for it: a session in hand is one owner, too.
pub(super) async fn of_two_sessions_has_one_victim(env: &Env) {
    let both_inside = Arc::new(Rendezvous::of(2));
    let mut tasks = Vec::new();
    for (first, second) in [("a", "b"), ("b", "a")] {
        let (locks, both_inside) = (env.manager().await, Arc::clone(&both_inside));
        tasks.push(env.spawn(async move {
            let session = locks.session().await.unwrap();
            let guard = session.lock(&locks.named(first)).await.unwrap();
            both_inside.reached().await;
            let second = session.lock_timeout(&locks.named(second), DEADLINE).await;
            let is_victim = match second {
                Ok(second) => {
                    second.release().await.unwrap();
                    false
                }
                Err(Error::Deadlock { .. }) => true,
                Err(error) => panic!("{error:?}"),
            };
            guard.release().await.unwrap();
            session.release().await.unwrap();
            is_victim
        }));
    }
    let mut victims = 0;
    for task in tasks {
        victims += usize::from(task.await);
    }
    assert_eq!(victims, 1);
    assert_eq!(env.held().await, []);
}

/// Guards outside of a section are owners of their own, which nobody knows to belong together.
pub(super) async fn of_guards_ends_by_timeout(env: &Env) {
    const PATIENCE: Duration = Duration::from_millis(800);

    let both_hold = Arc::new(Rendezvous::of(2));
    let locks = env.manager().await;
    let tasks = [("a", "b"), ("b", "a")].map(|(first, second)| {
        let (locks, both_hold) = (locks.clone(), Arc::clone(&both_hold));
        env.spawn(async move {
            let first = locks.named(first).lock().await.unwrap();
            both_hold.reached().await;
            let second = locks.named(second).lock_timeout(PATIENCE).await;
            let outcome = second.as_ref().map(drop).map_err(Clone::clone);
            drop((first, second));
            outcome
        })
    });
    let mut late = 0;
    for task in tasks {
        match task.await {
            // The other one's guard was dropped in time.
            Ok(()) => {}
            Err(Error::Timeout { .. }) => late += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(late >= 1);
    env.until_empty().await;
}

/// The locks of the victim come free one by one, as its sections end, and the other one goes on
/// with the first that it was waiting for.
pub(super) async fn victim_frees_as_it_unwinds(env: &Env) {
    let both_inside = Arc::new(Rendezvous::of(2));
    let unwound = Arc::new(Gate::default());
    let mut tasks = Vec::new();
    for (around, outer, inner) in [("around:1", "a", "b"), ("around:2", "b", "a")] {
        let locks = env.manager().await;
        let (both_inside, unwound) = (Arc::clone(&both_inside), Arc::clone(&unwound));
        tasks.push(env.spawn(async move {
            let [around, outer, inner] = [around, outer, inner].map(|name| locks.named(name));
            let crossing = outer.with(async || {
                both_inside.reached().await;
                // The winner stays inside until the victim has let go of everything.
                inner.with(async || unwound.passed().await).await
            });
            let crossed = around
                .with(async || (crossing.await.unwrap(), around.clone()))
                .await;
            let (crossed, around) = crossed.unwrap();
            if crossed.is_err() {
                unwound.open();
            }
            (crossed.is_err(), around.key(), outer.key())
        }));
    }
    unwound.passed().await;
    // What is left is the winner's: its three locks, on its session.
    let held = env.held().await;
    let sessions: Vec<_> = held.iter().map(|lock| lock.session).collect();
    assert!(sessions.iter().all(|id| *id == sessions[0]), "{held:?}");
    let mut victims = 0;
    for task in tasks {
        let (is_victim, ..) = task.await;
        victims += usize::from(is_victim);
    }
    assert_eq!(victims, 1);
    assert_eq!(env.held().await, []);
}

pub(super) async fn victim_keeps_what_it_holds(env: &Env) {
    let both_inside = Arc::new(Rendezvous::of(2));
    let seen = Arc::new(Gate::default());
    let mut tasks = Vec::new();
    let (told, mut victims) = futures::channel::mpsc::unbounded();
    for (outer, inner) in [("a", "b"), ("b", "a")] {
        let locks = env.manager().await;
        let (both_inside, seen, told) = (Arc::clone(&both_inside), Arc::clone(&seen), told.clone());
        tasks.push(env.spawn(async move {
            let (outer, inner) = (locks.named(outer), locks.named(inner));
            outer
                .with(async || {
                    both_inside.reached().await;
                    if inner.with(async || ()).await.is_err() {
                        told.unbounded_send(outer.key()).unwrap();
                        seen.passed().await;
                    }
                })
                .await
        }));
    }
    let key = futures::StreamExt::next(&mut victims)
        .await
        .expect("one is told");
    env.holder(key).await;
    assert_eq!(env.held().await.len(), 2);
    seen.open();
    for task in tasks {
        task.await.unwrap();
    }
    env.until_empty().await;
}
