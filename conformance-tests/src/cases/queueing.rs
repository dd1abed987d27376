use std::{
    pin::pin,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use advisory_core::{Error, Lock, LockGuard, Result, Stage};
use futures::{
    FutureExt,
    future::{BoxFuture, join_all},
    poll,
};

use crate::{
    Env,
    outcome::lost,
    sync::{DEADLINE, Gate, RacyCounter, pause},
};

/// Time enough for the queue to see that somebody does not poll.
const SOON: Duration = Duration::from_secs(10);

/// Waiters on a key that another process holds: one of them waits there.
pub(super) async fn one_of_many_waits_on_the_server(env: &Env) {
    const WAITERS: usize = 20;

    let guard = env.manager().await.named("imports:run").lock().await;
    let guard = guard.unwrap();
    let locks = env.manager_with_pool_of(2).await;
    let lock = locks.named("imports:run");
    let waiting: Vec<_> = (0..WAITERS)
        .map(|_| {
            let lock = lock.clone();
            env.spawn(async move { lock.with(async || ()).await })
        })
        .collect();
    env.until_waiters(lock.key(), 1).await;
    // All have come by the time one who comes now has.
    let mut late = pin!(lock.with(async || ()));
    assert!(poll!(&mut late).is_pending());
    assert_eq!(env.waiters(lock.key()).await, 1);

    guard.release().await.unwrap();
    for waiter in waiting {
        waiter.await.unwrap();
    }
    late.await.unwrap();
    env.until_empty().await;
}

/// More waiters than connections, whose sections each need another lock.
pub(super) async fn a_crowd_gets_by_with_one_connection(env: &Env) {
    const TASKS: usize = 64;

    let lock = env.manager_with_pool_of(1).await.named("imports:run");
    let counter = Arc::new(RacyCounter::default());
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (lock, counter) = (lock.clone(), Arc::clone(&counter));
            env.spawn(async move { lock.with(async || counter.increment().await).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(counter.value(), TASKS);
    env.until_empty().await;
}

pub(super) async fn first_come_is_first_served(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    let guard = lock.lock().await.unwrap();
    let order = Mutex::new(Vec::new());
    let mut waiting: Vec<_> = (0..5)
        .map(|number| {
            let (lock, order) = (&lock, &order);
            Box::pin(lock.with(async move || order.lock().unwrap().push(number)))
        })
        .collect();
    for waiter in &mut waiting {
        assert!(poll!(waiter).is_pending());
    }
    guard.release().await.unwrap();
    for outcome in join_all(waiting).await {
        outcome.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
}

pub(super) async fn a_cancelled_waiter_leaves_the_queue(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    let (guard, first, second) = held_and_wanted(&lock).await;
    drop(first);
    guard.release().await.unwrap();
    second.await.unwrap().release().await.unwrap();
    env.until_empty().await;
}

/// The lock is already his when he goes.
pub(super) async fn one_who_goes_with_the_lock_passes_it_on(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    let (guard, first, second) = held_and_wanted(&lock).await;
    guard.release().await.unwrap();
    drop(first);
    second.await.unwrap().release().await.unwrap();
    env.until_empty().await;
}

/// A guard, and two who wait for it in this order.
async fn held_and_wanted(lock: &Lock) -> (LockGuard, Wait<'_>, Wait<'_>) {
    let guard = lock.lock().await.unwrap();
    let (mut first, mut second) = (wait(lock), wait(lock));
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    (guard, first, second)
}

type Wait<'a> = BoxFuture<'a, Result<LockGuard>>;

fn wait(lock: &Lock) -> Wait<'_> {
    lock.lock().boxed()
}

/// He who releases the lock leads until it is given back, so nobody opens a session beside his.
pub(super) async fn who_comes_during_a_release_gets_the_session(env: &Env) {
    // However long ago it was granted, it might be handed over, but there was nobody.
    let options = env.options().hand_over_within(DEADLINE);
    let lock = env.manager_with(2, options).await.named("imports:run");
    let guard = lock.lock().await.unwrap();
    let (released, next) = futures::join!(guard.release(), lock.lock());
    released.unwrap();
    next.unwrap().release().await.unwrap();
    // In memory a session that is given back has ended.
    assert!(env.sessions().await.len() <= 1);
    env.until_empty().await;
}

/// Somebody queues up, and never polls again.
pub(super) async fn one_who_does_not_poll_holds_up_nobody_for_long(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    let (guard, sleeper, next) = held_and_wanted(&lock).await;
    let released = Instant::now();
    guard.release().await.unwrap();
    next.await.unwrap().release().await.unwrap();
    assert!(released.elapsed() < SOON, "{:?}", released.elapsed());

    // Nor does he keep the lock, when nobody is behind him.
    let guard = lock.lock().await.unwrap();
    let mut forgotten = wait(&lock);
    assert!(poll!(&mut forgotten).is_pending());
    guard.release().await.unwrap();
    std::mem::forget(forgotten);
    env.until_free_within(SOON, lock.key()).await;
    sleeper.await.unwrap().release().await.unwrap();
}

/// A holder who has not been heard of for long is not relied on: the server is asked.
pub(super) async fn a_silent_holder_is_not_relied_on(env: &Env) {
    let options = env.options().silence_seen_within(Duration::from_secs(1));
    let lock = env.manager_with(10, options).await.named("imports:run");
    let guard = lock.lock().await.unwrap();
    let mut waiter = pin!(lock.lock().fuse());
    let mut asked = pin!(env.until_waiters(lock.key(), 1).fuse());
    futures::select! {
        early = waiter => panic!("{early:?}"),
        () = asked => {}
    }
    guard.release().await.unwrap();
    waiter.await.unwrap().release().await.unwrap();
}

/// A session that is gone is not handed over, and its loss is told.
pub(super) async fn a_lost_lock_is_not_handed_over(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    let guard = lock.lock().await.unwrap();
    let holder = env.holder(lock.key()).await;
    let next = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().await }
    });
    env.terminate(holder).await;
    lost(guard.release().await);

    let guard = next.await.unwrap();
    assert_ne!(env.holder(lock.key()).await, holder);
    guard.release().await.unwrap();
}

/// What becomes of the session after the release is no loss of the one who had it.
pub(super) async fn a_later_loss_is_not_told_to_earlier_holders(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    let first = lock.lock().await.unwrap();
    let mut lost_by_first = pin!(first.lost());
    let mut second = Box::pin(lock.lock());
    assert!(poll!(&mut second).is_pending());
    first.release().await.unwrap();
    let second = second.await.unwrap();

    env.terminate(env.holder(lock.key()).await).await;
    second.lost().await;
    pause(Duration::from_millis(600)).await;
    assert!(poll!(&mut lost_by_first).is_pending());
    lost(second.release().await);
}

pub(super) async fn each_holder_has_a_token_of_its_own(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    let tokens = Mutex::new(Vec::new());
    let sections = (0..20).map(|_| {
        lock.with_guard(async |guard| {
            let token = guard.fencing_token().await.unwrap();
            tokens.lock().unwrap().push(token);
        })
    });
    for outcome in join_all(sections).await {
        outcome.unwrap();
    }
    let tokens = tokens.into_inner().unwrap();
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

/// Somebody of another process gets in between those of a crowd that never ends.
pub(super) async fn others_get_their_turn(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    let done = Arc::new(Gate::default());
    let crowd: Vec<_> = (0..8)
        .map(|_| {
            let (lock, done) = (lock.clone(), Arc::clone(&done));
            env.spawn(async move {
                while !done.is_open() {
                    lock.with(async || ()).await.unwrap();
                }
            })
        })
        .collect();
    let rival = env.manager().await.named("imports:run");
    for _ in 0..5 {
        let entered = rival.with_timeout(DEADLINE, async || ()).await;
        entered.unwrap();
    }
    done.open();
    for task in crowd {
        task.await;
    }
}

pub(super) async fn can_be_kept_from_handing_over(env: &Env) {
    let options = env.options().hand_over_within(Duration::ZERO);
    let lock = env.manager_with(3, options).await.named("imports:run");
    let counter = Arc::new(RacyCounter::default());
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let (lock, counter) = (lock.clone(), Arc::clone(&counter));
            env.spawn(async move { lock.with(async || counter.increment().await).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(counter.value(), 10);
}

pub(super) async fn a_timeout_in_the_queue_names_the_holder(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    let guard = lock.lock().await.unwrap();
    let holder = env.holder(lock.key()).await;
    let late = lock.lock_timeout(Duration::from_millis(50)).await;
    match late {
        Err(Error::Timeout { stage, holders, .. }) => {
            assert_eq!(stage, Stage::Lock);
            let holders: Vec<_> = holders
                .iter()
                .map(|holder| holder.session.number())
                .collect();
            assert_eq!(holders, [holder]);
        }
        other => panic!("{other:?}"),
    }
    guard.release().await.unwrap();
}

/// A guard that is dropped, not released.
pub(super) async fn a_drop_hands_over(env: &Env) {
    let lock = env.manager_with_pool_of(1).await.named("imports:run");
    let guard = lock.lock().await.unwrap();
    let mut next = Box::pin(lock.lock());
    assert!(poll!(&mut next).is_pending());
    drop(guard);
    next.await.unwrap().release().await.unwrap();
    env.until_empty().await;
}

pub(super) async fn close_waits_for_the_queue(env: &Env) {
    let locks = env.manager().await;
    let lock = locks.named("imports:run");
    let guard = lock.lock().await.unwrap();
    let mut waiter = Box::pin(lock.with(async || ()));
    assert!(poll!(&mut waiter).is_pending());
    let mut close = pin!(locks.close());
    assert!(poll!(&mut close).is_pending());

    guard.release().await.unwrap();
    assert!(poll!(&mut close).is_pending());
    waiter.await.unwrap();
    close.await.unwrap();
    assert!(matches!(lock.lock().await, Err(Error::Closed)));
}
