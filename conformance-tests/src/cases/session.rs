use std::time::Duration;

use advisory_core::{Error, LockMode};
use futures::future::{Either, pending, select};

use crate::{
    Env,
    sync::{DEADLINE, Gate},
};

const SHORT: Duration = Duration::from_millis(100);

pub(super) async fn holds_many_locks(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let session = locks.session().await.unwrap();
    let mut guards = Vec::new();
    for shard in 0..5_i64 {
        guards.push(session.lock(&locks.keyed(shard)).await.unwrap());
        guards.extend(session.try_lock(&locks.keyed((7, 1))).await.unwrap());
    }
    let reader = locks.named("catalogue").shared();
    guards.push(session.lock_timeout(&reader, DEADLINE).await.unwrap());

    let held = env.held().await;
    assert_eq!(held.len(), 7);
    let id = session.id().expect("the server has answered").number();
    assert!(held.iter().all(|lock| lock.session == id), "{held:?}");
    assert_eq!(env.holders(reader.key()).await, [(id, LockMode::Shared)]);
    for guard in guards {
        guard.release().await.unwrap();
    }
    session.release().await.unwrap();
    assert_eq!(env.held().await, []);
}

pub(super) async fn guards_are_independent(env: &Env) {
    let locks = env.manager().await;
    let session = locks.session().await.unwrap();
    let [one, two, three] = [1, 2, 3].map(|key: i64| locks.keyed(key));
    let first = session.lock(&one).await.unwrap();
    let second = session.lock(&two).await.unwrap();
    let third = session.lock(&three).await.unwrap();
    let id = env.holder(one.key()).await;

    // Any order will do, on any task, and a drop as well as a release.
    env.spawn(second.release()).await.unwrap();
    assert_eq!(env.holders(two.key()).await, []);
    drop(first);
    env.until_free_within(Duration::from_secs(1), one.key())
        .await;
    assert_eq!(env.holder(three.key()).await, id);
    third.release().await.unwrap();
    assert_eq!(env.held().await, []);
    session.release().await.unwrap();
}

pub(super) async fn same_key_is_reentered(env: &Env) {
    let locks = env.manager().await;
    let lock = locks.named("imports:run");
    let rival = env.manager().await.named("imports:run");
    let session = locks.session().await.unwrap();
    let guards = [
        session.lock(&lock).await.unwrap(),
        session.try_lock(&lock).await.unwrap().expect("it is ours"),
        session.lock_timeout(&lock, Duration::ZERO).await.unwrap(),
    ];
    for guard in guards {
        assert!(rival.try_lock().await.unwrap().is_none());
        env.holder(lock.key()).await;
        guard.release().await.unwrap();
    }
    let guard = rival.try_lock().await.unwrap().expect("the last is gone");
    guard.release().await.unwrap();
    session.release().await.unwrap();
}

pub(super) async fn respects_what_others_hold(env: &Env) {
    let locks = env.manager().await;
    let (ours, theirs) = (locks.named("ours"), locks.named("theirs"));
    let rival = theirs.lock().await.unwrap();
    let session = locks.session().await.unwrap();
    let guard = session.lock(&ours).await.unwrap();

    assert!(session.try_lock(&theirs).await.unwrap().is_none());
    let late = session.lock_timeout(&theirs, SHORT).await;
    assert!(matches!(late, Err(Error::Timeout { .. })), "{late:?}");
    env.until_waiters(theirs.key(), 0).await;
    env.holder(ours.key()).await;

    let waiting = env.spawn({
        let (session, theirs) = (session.clone(), theirs.clone());
        async move { session.lock(&theirs).await }
    });
    env.until_waiters(theirs.key(), 1).await;
    rival.release().await.unwrap();
    let second = waiting.await.unwrap();
    assert_eq!(env.holder(theirs.key()).await, env.holder(ours.key()).await);
    second.release().await.unwrap();
    guard.release().await.unwrap();
    session.release().await.unwrap();
    assert_eq!(env.held().await, []);
}

pub(super) async fn is_kept_by_its_guards(env: &Env) {
    let locks = env.manager().await;
    let (kept, other) = (locks.named("kept"), locks.named("other"));
    for dropped in [false, true] {
        let session = locks.session().await.unwrap();
        let guard = session.lock(&kept).await.unwrap();
        let id = env.holder(kept.key()).await;
        if dropped {
            drop(session);
        } else {
            session.release().await.unwrap();
        }
        assert_eq!(env.holder(kept.key()).await, id);
        // It is nobody else's meanwhile.
        let next = other.lock().await.unwrap();
        assert_ne!(env.holder(other.key()).await, id);
        next.release().await.unwrap();
        guard.release().await.unwrap();
        assert_eq!(env.held().await, []);
    }
}

/// The connection is not given back before the last of handles and guards is gone.
pub(super) async fn makes_room_after_the_last(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let lock = locks.named("imports:run");
    for round in 0..4 {
        let session = locks.session().await.unwrap();
        let clone = session.clone();
        let guard = session.lock(&lock).await.unwrap();
        session.release().await.unwrap();
        guard.release().await.unwrap();
        let mut next = Box::pin(locks.session());
        assert!(futures::poll!(&mut next).is_pending(), "the clone is left");
        match round % 2 {
            0 => clone.release().await.unwrap(),
            _ => drop(clone),
        }
        next.await.unwrap().release().await.unwrap();
    }
}

pub(super) async fn refuses_locks_of_other_managers(env: &Env) {
    let (locks, others) = (env.manager().await, env.manager().await);
    let foreign = others.named("imports:run");
    let session = locks.session().await.unwrap();
    let refusals = [
        session.lock(&foreign).await.map(drop),
        session.try_lock(&foreign).await.map(drop),
        session.lock_timeout(&foreign, SHORT).await.map(drop),
    ];
    for refused in refusals {
        assert!(matches!(refused, Err(Error::ForeignLock)), "{refused:?}");
    }
    assert_eq!(env.held().await, []);
    // Locks of a clone of its manager, and of a namespace, are no strangers.
    let own = locks.clone().namespace("tenant-a").named("digest");
    session.lock(&own).await.unwrap().release().await.unwrap();
    session.release().await.unwrap();
}

pub(super) async fn tells_its_loss(env: &Env) {
    let locks = env.manager().await;
    let session = locks.session().await.unwrap();
    let guard = session.lock(&locks.named("held")).await.unwrap();
    assert!(!session.is_lost() && !guard.is_lost());
    env.terminate(env.holder(guard.key()).await).await;

    let next = session.lock(&locks.named("next")).await;
    assert!(matches!(next, Err(Error::Lost { .. })), "{next:?}");
    assert!(session.is_lost() && guard.is_lost());
    // What it held must not be entered anew.
    let held = locks.keyed(guard.key());
    let again = session.lock(&held).await;
    assert!(matches!(again, Err(Error::Lost { .. })), "{again:?}");
    let results = [
        guard.release().await,
        session.scope(async {}).await,
        session.release().await,
    ];
    for result in results {
        assert!(matches!(result, Err(Error::Lost { .. })), "{result:?}");
    }
    assert_eq!(env.held().await, []);
}

pub(super) async fn survives_a_cancelled_wait(env: &Env) {
    let locks = env.manager().await;
    let (ours, theirs) = (locks.named("ours"), locks.named("theirs"));
    let rival = theirs.lock().await.unwrap();
    let session = locks.session().await.unwrap();
    let guard = session.lock(&ours).await.unwrap();
    let id = env.holder(ours.key()).await;

    let waiting = env.spawn({
        let (session, theirs) = (session.clone(), theirs.clone());
        async move { session.lock(&theirs).await.map(drop) }
    });
    env.until_waiters(theirs.key(), 1).await;
    assert!(waiting.cancel().await.is_none());
    // Whoever uses the session next ends what was left behind.
    let more = session.lock(&locks.named("more")).await.unwrap();
    assert_eq!(env.holder(more.key()).await, id);
    env.until_waiters(theirs.key(), 0).await;

    rival.release().await.unwrap();
    env.until_free(theirs.key()).await;
    more.release().await.unwrap();
    guard.release().await.unwrap();
    session.release().await.unwrap();
}

pub(super) async fn survives_a_dropped_scope(env: &Env) {
    let locks = env.manager().await;
    let (held, nested) = (locks.named("held"), locks.named("nested"));
    let session = locks.session().await.unwrap();
    let guard = session.lock(&held).await.unwrap();
    let id = env.holder(held.key()).await;

    let inside = Gate::default();
    let endless = session.scope(nested.with(async || {
        inside.open();
        pending::<()>().await;
    }));
    match select(Box::pin(endless), Box::pin(inside.passed())).await {
        Either::Left((ended, _)) => panic!("it cannot end: {ended:?}"),
        Either::Right(((), endless)) => {
            assert_eq!(env.holder(nested.key()).await, id);
            drop(endless);
        }
    }
    // Whoever uses the session next ends what was left behind.
    let more = session.lock(&locks.named("more")).await.unwrap();
    assert_eq!(env.holder(more.key()).await, id);
    assert_eq!(env.holders(nested.key()).await, []);
    assert_eq!(env.holder(held.key()).await, id);
    more.release().await.unwrap();
    guard.release().await.unwrap();
    session.release().await.unwrap();
    assert_eq!(env.held().await, []);
}
