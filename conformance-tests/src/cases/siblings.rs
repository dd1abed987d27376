use advisory_core::Error;
use futures::future::join;

use crate::{
    Env,
    sync::{Gate, RacyCounter, Rendezvous},
};

pub(super) async fn exclude_each_other(env: &Env) {
    let locks = env.manager().await;
    let lock = locks.named("sibling");
    let counter = RacyCounter::default();
    let section = || async {
        for _ in 0..5 {
            lock.with(async || counter.increment().await).await.unwrap();
        }
    };
    locks
        .named("around")
        .with(async || {
            let inside = Gate::default();
            let tried = Gate::default();
            let holder = lock.with(async || {
                inside.open();
                tried.passed().await;
            });
            let rival = async {
                inside.passed().await;
                assert_eq!(lock.try_with(async || ()).await.unwrap(), None);
                tried.open();
            };
            join(holder, rival).await.0.unwrap();
            join(section(), section()).await;
        })
        .await
        .unwrap();
    assert_eq!(counter.value(), 10);
    assert_eq!(env.held().await, []);
}

pub(super) async fn overlap_under_their_own_lock(env: &Env) {
    let lock = env.manager().await.named("sibling");
    lock.with(async || {
        let both_inside = Rendezvous::of(2);
        let section = || lock.with(async || both_inside.reached().await);
        let (one, other) = join(section(), section()).await;
        one.and(other).unwrap();
        env.holder(lock.key()).await;
    })
    .await
    .unwrap();
    assert_eq!(env.held().await, []);
}

pub(super) async fn in_a_cycle_are_told(env: &Env) {
    let locks = env.manager().await;
    let (a, b) = (locks.named("a"), locks.named("b"));
    locks
        .named("around")
        .with(async || {
            let both_inside = Rendezvous::of(2);
            let one = a.with(async || {
                both_inside.reached().await;
                b.with(async || ()).await
            });
            let other = b.with(async || {
                both_inside.reached().await;
                a.with(async || ()).await
            });
            let (one, other) = join(one, other).await;
            let victims = [one.unwrap(), other.unwrap()]
                .into_iter()
                .filter(|inner| matches!(inner, Err(Error::Deadlock { .. })))
                .count();
            assert_eq!(victims, 1);
        })
        .await
        .unwrap();
    assert_eq!(env.held().await, []);
}
