use std::{thread, time::Duration};

use advisory_core::{
    LockKey, LockMode, SessionId,
    spi::{Turn, Waited},
};

use crate::{
    Env,
    spi::{Session, exclusive, give_back, id_of, shared, take, try_lock, unlock, wait},
};

/// How soon the server has to know of a drop.
const BOUND: Duration = Duration::from_secs(1);

pub(super) async fn are_known_by_one_id(env: &Env) {
    let (mut session, mut other) = (env.session().await, env.session().await);
    take(&mut session, &[exclusive(1)]).await;
    let id = id_of(&session);
    assert_eq!(env.holder(1.into()).await, id.number());
    let seen = [(id, LockMode::Exclusive)];
    assert_eq!(holders(&mut other, 1).await, seen);
    assert_eq!(holders(&mut session, 1).await, seen);

    // Whatever it is asked, it stays who it is.
    take(&mut other, &[exclusive(2)]).await;
    assert!(!try_lock(&mut session, exclusive(2)).await.unwrap());
    assert_eq!(id_of(&session), id);
    let turn = Turn::first(Some(Duration::from_millis(10)));
    let over = session.wait(exclusive(2), turn).await.unwrap();
    assert!(matches!(over, Waited::TurnOver { .. }));
    assert_eq!(id_of(&session), id);
    session.fencing_token().await.unwrap();
    assert_eq!(id_of(&session), id);
    session.probe().await.unwrap();
    assert_eq!(id_of(&session), id);
    take(&mut session, &[exclusive(3)]).await;
    give_back(&mut session, &[exclusive(1)]).await;
    assert_eq!(id_of(&session), id);
    assert_eq!(env.holder(3.into()).await, id.number());

    // Holding nothing it may become another one.
    give_back(&mut session, &[exclusive(3)]).await;
    take(&mut session, &[exclusive(3)]).await;
    assert_eq!(env.holder(3.into()).await, id_of(&session).number());
}

pub(super) async fn have_ids_of_their_own(env: &Env) {
    let (one, other) = (env.backend(2).await, env.backend(2).await);
    let mut sessions = Vec::new();
    for backend in [&one, &other, &one, &other] {
        let mut session = backend.open().await.unwrap();
        take(&mut session, &[shared(1)]).await;
        sessions.push(session);
    }
    let mut ids: Vec<_> = sessions.iter().map(id_of).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), sessions.len());

    let mut seen = env.holders(1.into()).await;
    seen.sort();
    let numbers = ids.iter().map(|id| (id.number(), LockMode::Shared));
    assert_eq!(seen, numbers.collect::<Vec<_>>());
}

pub(super) async fn see_everybody_who_holds_the_key(env: &Env) {
    let mut stranger = env.session().await;
    let [mut one, mut two, mut three] = [
        env.session().await,
        env.session().await,
        env.session().await,
    ];
    for key in [LockKey::Pair(7, 1), LockKey::BigInt((7 << 32) | 1)] {
        assert_eq!(holders(&mut stranger, key).await, []);
        take(&mut one, &[shared(key)]).await;
        take(&mut two, &[shared(key)]).await;
        let mut expected = vec![
            (id_of(&one), LockMode::Shared),
            (id_of(&two), LockMode::Shared),
        ];
        expected.sort();
        // One that is not among them, one that is, and one that holds another key.
        take(&mut three, &[exclusive(9)]).await;
        for session in [&mut stranger, &mut two, &mut three] {
            assert_eq!(holders(session, key).await, expected);
        }
        give_back(&mut two, &[shared(key)]).await;

        // Alone with the key, a reader may have it in the other mode as well.
        take(&mut one, &[exclusive(key)]).await;
        let id = id_of(&one);
        let mut expected = [(id, LockMode::Exclusive), (id, LockMode::Shared)];
        expected.sort();
        assert_eq!(holders(&mut stranger, key).await, expected);
        give_back(&mut one, &[shared(key), exclusive(key)]).await;
        give_back(&mut three, &[exclusive(9)]).await;
    }
}

pub(super) async fn do_not_take_a_waiter_for_a_holder(env: &Env) {
    let [mut holder, mut waiter, mut stranger] = [
        env.session().await,
        env.session().await,
        env.session().await,
    ];
    take(&mut holder, &[shared(1)]).await;
    let waiting = env.spawn(async move {
        assert!(!try_lock(&mut waiter, exclusive(1)).await.unwrap());
        wait(&mut waiter, exclusive(1), false).await
    });
    env.until_waiters(1.into(), 1).await;
    let expected = [(id_of(&holder), LockMode::Shared)];
    assert_eq!(holders(&mut stranger, 1).await, expected);
    give_back(&mut holder, &[shared(1)]).await;
    waiting.await.unwrap();
}

/// Whatever the last session of a connection did, the next one finds nothing of it.
pub(super) async fn begin_with_nothing(env: &Env) {
    env.expect_vain_unlocks();
    let claims = [exclusive(1), shared(1), exclusive((7, 1)), shared(2)];
    let backend = env.backend(1).await;
    let mut rival = env.session().await;
    take(&mut rival, &[exclusive(9)]).await;
    let theirs = env.held().await;
    for _ in 0..4 {
        let mut session = backend.open().await.unwrap();
        for claim in claims {
            assert!(!unlock(&mut session, claim).await.unwrap(), "{claim:?}");
        }
        take(&mut session, &claims).await;
        assert!(!try_lock(&mut session, exclusive(9)).await.unwrap());
        let turn = Turn::first(Some(Duration::from_millis(10)));
        let over = session.wait(exclusive(9), turn).await.unwrap();
        assert!(matches!(over, Waited::TurnOver { .. }));
        assert_eq!(env.held().await.len(), theirs.len() + claims.len());

        give_back(&mut session, &claims).await;
        assert_eq!(env.held().await, theirs);
        session.recycle().await;
        assert_eq!(env.held().await, theirs);
        assert_eq!(env.waiters(9.into()).await, 0);
    }
}

pub(super) async fn free_all_they_hold_when_dropped(env: &Env) {
    let backend = env.backend(1).await;
    let claims = [exclusive(1), shared(1), exclusive((7, 1)), shared(2)];
    let mut last = None;
    for outside_of_any_runtime in [false, true, false] {
        let mut session = backend.open().await.unwrap();
        take(&mut session, &claims).await;
        let id = Some(id_of(&session));
        // What is dropped is lent to nobody.
        assert_ne!(id, last);
        last = id;
        if outside_of_any_runtime {
            thread::spawn(|| drop(session)).join().unwrap();
        } else {
            drop(session);
        }
        for claim in claims {
            env.until_free_within(BOUND, claim.key).await;
        }
    }
}

/// Who holds the key, as the session sees it.
async fn holders(session: &mut Session, key: impl Into<LockKey>) -> Vec<(SessionId, LockMode)> {
    let key = key.into();
    let holders = session.holders(key).await.unwrap();
    let mut seen: Vec<_> = holders
        .iter()
        .inspect(|holder| assert_eq!(holder.key, key))
        .map(|holder| (holder.session, holder.mode))
        .collect();
    seen.sort();
    seen
}
