use advisory_core::{
    SessionId,
    spi::{
        Claim,
        Request::{TryLock, Unlock},
    },
};

use crate::{
    Env, SeenLock,
    spi::{KEYS, exclusive, give_back, id_of, shared, take, unlock},
};

pub(super) async fn are_answered_in_their_order(env: &Env) {
    env.expect_vain_unlocks();
    let (mut session, mut rival) = (env.session().await, env.session().await);
    take(&mut rival, &[exclusive(1), shared((7, 1))]).await;

    // Neither backwards nor sorted by any of its kinds does it have these answers.
    let (batch, expected): (Vec<_>, Vec<_>) = [
        (TryLock(exclusive(2)), true),
        (TryLock(exclusive(3)), true),
        (TryLock(exclusive(1)), false),
        (TryLock(shared((7, 1))), true),
        (Unlock(exclusive(2)), true),
        (TryLock(exclusive((7, 1))), false),
        (Unlock(shared(3)), false),
        (Unlock(exclusive(2)), false),
        (TryLock(shared(2)), true),
        (TryLock(shared(1)), false),
        (Unlock(exclusive((7, 2))), false),
        (TryLock(exclusive((7, 2))), true),
    ]
    .into_iter()
    .unzip();
    assert_eq!(session.submit(&batch).await.unwrap(), expected);

    let mut held = held_by(env, id_of(&session)).await;
    held.sort();
    let mut left = [exclusive(3), shared(2), shared((7, 1)), exclusive((7, 2))];
    left.sort();
    assert_eq!(held, left);
}

pub(super) async fn have_an_answer_for_each_request(env: &Env) {
    let mut session = env.session().await;
    for length in [1, 2, 3, 7, 50] {
        let claims: Vec<_> = (0..length).map(exclusive).collect();
        let all = vec![true; claims.len()];
        let locks: Vec<_> = claims.iter().copied().map(TryLock).collect();
        assert_eq!(session.submit(&locks).await.unwrap(), all);
        assert_eq!(env.held().await.len(), claims.len());
        let unlocks: Vec<_> = claims.iter().copied().map(Unlock).collect();
        assert_eq!(session.submit(&unlocks).await.unwrap(), all);
        assert_eq!(env.held().await, []);
    }
}

pub(super) async fn may_be_empty(env: &Env) {
    let mut session = env.session().await;
    let none: [bool; 0] = [];
    assert_eq!(session.submit(&[]).await.unwrap(), none);
    take(&mut session, &[exclusive(1)]).await;
    assert_eq!(session.submit(&[]).await.unwrap(), none);
    assert_eq!(held_by(env, id_of(&session)).await, [exclusive(1)]);
    give_back(&mut session, &[exclusive(1)]).await;
}

/// A miss is an answer: it does not end the batch, and takes nothing.
pub(super) async fn take_what_they_say(env: &Env) {
    let (mut session, mut rival) = (env.session().await, env.session().await);
    let claims: Vec<_> = (0..50).map(exclusive).collect();
    let theirs: Vec<_> = claims.iter().copied().step_by(3).collect();
    take(&mut rival, &theirs).await;

    let batch: Vec<_> = claims.iter().copied().map(TryLock).collect();
    let answers = session.submit(&batch).await.unwrap();
    let hits = claims.iter().zip(answers).filter(|(_, taken)| *taken);
    let hits: Vec<_> = hits.map(|(claim, _)| *claim).collect();
    assert!(hits.iter().all(|claim| !theirs.contains(claim)));
    assert_eq!(hits.len() + theirs.len(), claims.len());
    let mut held = held_by(env, id_of(&session)).await;
    held.sort();
    assert_eq!(held, hits);
}

pub(super) async fn unlock_only_what_is_held(env: &Env) {
    env.expect_vain_unlocks();
    let (mut session, mut rival) = (env.session().await, env.session().await);
    for key in KEYS {
        let [x, s] = [exclusive(key), shared(key)];
        for claim in [x, s] {
            assert!(!unlock(&mut session, claim).await.unwrap(), "never held");

            take(&mut session, &[claim]).await;
            give_back(&mut session, &[claim]).await;
            assert!(!unlock(&mut session, claim).await.unwrap(), "held once");

            take(&mut rival, &[claim]).await;
            assert!(!unlock(&mut session, claim).await.unwrap(), "a rival's");
            assert_eq!(held_by(env, id_of(&rival)).await, [claim]);
            give_back(&mut rival, &[claim]).await;
        }
    }
    assert_eq!(env.held().await, []);
}

pub(super) async fn unlock_in_the_mode_that_is_held(env: &Env) {
    env.expect_vain_unlocks();
    let mut session = env.session().await;
    for key in KEYS {
        let [x, s] = [exclusive(key), shared(key)];
        for (held, other) in [(x, s), (s, x)] {
            take(&mut session, &[held]).await;
            assert!(!unlock(&mut session, other).await.unwrap(), "{other:?}");
            assert_eq!(held_by(env, id_of(&session)).await, [held]);

            // With both of them held, one goes and the other stays.
            take(&mut session, &[other]).await;
            give_back(&mut session, &[held]).await;
            assert_eq!(held_by(env, id_of(&session)).await, [other]);
            give_back(&mut session, &[other]).await;
            assert_eq!(env.held().await, []);
        }
    }
}

/// What the observer sees the session hold.
async fn held_by(env: &Env, session: SessionId) -> Vec<Claim> {
    let held = env.held().await.into_iter();
    let own = held.filter(|lock| lock.session == session.number());
    own.map(|SeenLock { claim, .. }| claim).collect()
}
