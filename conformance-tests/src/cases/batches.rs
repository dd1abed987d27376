use std::{sync::Arc, time::Duration};

use advisory_core::{Error, Lock, LockGuard, LockKey, LockManager};
use futures::poll;

use crate::{Env, outcome::lost, sync::DEADLINE};

fn shards(locks: &LockManager, count: usize) -> Vec<Lock> {
    let shards = 0..count;
    shards
        .map(|shard| locks.named(format!("shard:{shard}")))
        .collect()
}

fn keys(locks: impl IntoIterator<Item = LockKey>) -> Vec<LockKey> {
    let mut keys: Vec<_> = locks.into_iter().collect();
    keys.sort_unstable();
    keys
}

/// What the server holds, however many sessions there are.
async fn held(env: &Env) -> Vec<LockKey> {
    keys(env.held().await.into_iter().map(|lock| lock.claim.key))
}

pub(super) async fn hold_what_they_say(env: &Env) {
    let theirs = env.manager().await;
    let session = theirs.session().await.unwrap();
    for shard in shards(&theirs, 50).iter().step_by(3) {
        let guard = session.try_lock(shard).await.unwrap();
        std::mem::forget(guard.expect("it is free"));
    }
    let taken = held(env).await;

    let locks = env.manager().await;
    let wanted = shards(&locks, 50);
    let tried = locks.try_lock_each(&wanted).await.unwrap();
    assert_eq!(tried.len(), 50);
    let mine: Vec<LockGuard> = tried.into_iter().flatten().collect();
    assert_eq!(mine.len() + taken.len(), 50);
    let mut all = keys(mine.iter().map(LockGuard::key));
    assert_eq!(
        all,
        keys(
            held(env)
                .await
                .into_iter()
                .filter(|key| !taken.contains(key))
        )
    );
    all.extend(&taken);
    assert_eq!(keys(all), keys(wanted.iter().map(Lock::key)));

    LockGuard::release_all(mine).await.unwrap();
    assert_eq!(held(env).await, taken);
}

/// Both key spaces, both modes, and some more than once.
pub(super) async fn may_be_mixed(env: &Env) {
    let locks = env.manager().await;
    let session = locks.session().await.unwrap();
    let wanted = [
        locks.keyed(7),
        locks.keyed((0, 7)),
        locks.keyed(8).shared(),
        locks.keyed(7),
        locks.keyed((1, 7)).shared(),
        locks.keyed(8),
    ];
    let tried = session.try_lock_each(&wanted).await.unwrap();
    assert!(tried.iter().all(Option::is_some), "{tried:?}");
    assert_eq!(env.held().await.len(), 5);
    LockGuard::release_all(tried.into_iter().flatten())
        .await
        .unwrap();
    assert_eq!(env.held().await, []);
    session.release().await.unwrap();
}

pub(super) async fn guards_are_independent(env: &Env) {
    let locks = env.manager().await;
    let wanted = shards(&locks, 3);
    let mut guards = locks.lock_all(&wanted).await.unwrap();
    guards.remove(1).release().await.unwrap();
    drop(guards.remove(0));
    env.until_free(wanted[0].key()).await;
    assert_eq!(held(env).await, [wanted[2].key()]);
    guards.remove(0).release().await.unwrap();
    env.until_empty().await;
}

pub(super) async fn of_many_thousands(env: &Env) {
    const LOCKS: usize = 10_000;

    let locks = env.manager_with_pool_of(1).await;
    let wanted: Vec<_> = (0..LOCKS)
        .map(|key| locks.keyed(i64::try_from(key).unwrap()))
        .collect();
    let session = locks.session().await.unwrap();
    let tried = session.try_lock_each(&wanted).await.unwrap();
    assert!(tried.iter().all(Option::is_some));
    assert_eq!(env.held().await.len(), LOCKS);
    LockGuard::release_all(tried.into_iter().flatten())
        .await
        .unwrap();
    assert_eq!(env.held().await, []);
    session.release().await.unwrap();
}

pub(super) async fn all_means_all(env: &Env) {
    let locks = env.manager().await;
    let [a, b, c] = ["a", "b", "c"].map(|name| locks.named(name));
    let rival = env.manager().await;
    let guard = rival.keyed(b.key()).lock().await.unwrap();

    let wanted = [c.clone(), b.clone(), a.clone(), c.clone()];
    let late = locks
        .lock_all_timeout(&wanted, Duration::from_millis(50))
        .await;
    assert!(matches!(late, Err(Error::Timeout { .. })), "{late:?}");
    env.until_free(a.key()).await;
    env.until_free(c.key()).await;

    let mut cancelled = Box::pin(locks.lock_all(&wanted));
    assert!(poll!(&mut cancelled).is_pending());
    drop(cancelled);
    env.until_free(a.key()).await;
    env.until_free(c.key()).await;

    let mut waiting = Box::pin(locks.lock_all(&wanted));
    assert!(poll!(&mut waiting).is_pending());
    guard.release().await.unwrap();
    let guards = waiting.await.unwrap();
    let got: Vec<_> = guards.iter().map(LockGuard::key).collect();
    assert_eq!(got, wanted.map(|lock| lock.key()));
    LockGuard::release_all(guards).await.unwrap();
    env.until_empty().await;
}

/// In opposite orders, which would be a deadlock one by one.
pub(super) async fn of_all_in_any_order_are_no_deadlock(env: &Env) {
    const ROUNDS: usize = 200;

    let tasks: Vec<_> = [false, true]
        .map(|reversed| async move {
            let locks = env.manager().await;
            let mut wanted = shards(&locks, 3);
            wanted.push(wanted[0].clone());
            if reversed {
                wanted.reverse();
            }
            (locks, wanted)
        })
        .into();
    let mut running = Vec::new();
    for task in tasks {
        let (locks, wanted) = task.await;
        running.push(env.spawn(async move {
            for _ in 0..ROUNDS {
                let guards = locks.lock_all_timeout(&wanted, DEADLINE).await?;
                LockGuard::release_all(guards).await?;
            }
            Ok::<_, Error>(())
        }));
    }
    for task in running {
        task.await.unwrap();
    }
    env.until_empty().await;
}

pub(super) async fn join_the_section_around_them(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let wanted = shards(&locks, 3);
    let section = wanted[1].with(async || {
        let guards = locks.lock_all(&wanted).await.unwrap();
        assert_eq!(held(env).await, keys(wanted.iter().map(Lock::key)));
        LockGuard::release_all(guards).await.unwrap();
        assert_eq!(held(env).await, [wanted[1].key()]);
    });
    section.await.unwrap();
    env.until_empty().await;
}

pub(super) async fn tell_a_loss(env: &Env) {
    let locks = env.manager().await;
    let wanted = shards(&locks, 3);
    let guards = locks.lock_all(&wanted).await.unwrap();
    env.terminate(env.holder(wanted[0].key()).await).await;
    lost(LockGuard::release_all(guards).await);
    env.until_empty().await;
}

/// Tasks that ask at the same moment, on one session.
pub(super) async fn of_many_tasks_keep_apart(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let session = locks.session().await.unwrap();
    let wanted = Arc::new(shards(&locks, 30));
    let tasks: Vec<_> = (0..30)
        .map(|task| {
            let (session, wanted) = (session.clone(), Arc::clone(&wanted));
            env.spawn(async move {
                for _ in 0..10 {
                    let guard = session.lock(&wanted[task]).await?;
                    guard.release().await?;
                }
                session.release().await
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(env.held().await, []);
    session.release().await.unwrap();
}
