use std::sync::Arc;

use advisory_core::{Error, Lock, Result};

use crate::{
    Env, Task,
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
