//! What cases say to a session of a backend, without a manager between.

use std::time::Instant;

use advisory_core::{
    LockKey, LockMode, LockSession, Result, SessionId,
    spi::{Claim, Request, Turn, Waited},
};

use crate::sync::DEADLINE;

pub(crate) type Session = Box<dyn LockSession>;

/// A key of each space.
pub(crate) const KEYS: [LockKey; 2] = [LockKey::BigInt(1), LockKey::Pair(7, 1)];

pub(crate) fn exclusive(key: impl Into<LockKey>) -> Claim {
    let mode = LockMode::Exclusive;
    Claim {
        key: key.into(),
        mode,
    }
}

pub(crate) fn shared(key: impl Into<LockKey>) -> Claim {
    let mode = LockMode::Shared;
    Claim {
        key: key.into(),
        mode,
    }
}

/// Who a session is, once the server has answered.
pub(crate) fn id_of(session: &Session) -> SessionId {
    session.id().expect("the server has answered")
}

pub(crate) async fn try_lock(session: &mut Session, claim: Claim) -> Result<bool> {
    ask(session, Request::TryLock(claim)).await
}

pub(crate) async fn unlock(session: &mut Session, claim: Claim) -> Result<bool> {
    ask(session, Request::Unlock(claim)).await
}

async fn ask(session: &mut Session, request: Request) -> Result<bool> {
    let answers = session.submit(&[request]).await?;
    match answers[..] {
        [answer] => Ok(answer),
        _ => panic!("{request:?} has one answer, not {answers:?}"),
    }
}

/// Takes claims that nothing stands in the way of.
pub(crate) async fn take(session: &mut Session, claims: &[Claim]) {
    for &claim in claims {
        let taken = try_lock(session, claim).await.unwrap();
        assert!(taken, "{claim:?} was free");
    }
}

/// Gives back claims that are held.
pub(crate) async fn give_back(session: &mut Session, claims: &[Claim]) {
    for &claim in claims {
        let held = unlock(session, claim).await.unwrap();
        assert!(held, "{claim:?} was held");
    }
}

/// Waits in turns, as the core does, until the claim is held or the wait has failed.
pub(crate) async fn wait(session: &mut Session, claim: Claim, holding: bool) -> Result<()> {
    let started = Instant::now();
    let mut turn = Turn::first(None);
    turn.holding = holding;
    while let Waited::TurnOver { behind_readers } = session.wait(claim, turn).await? {
        turn.waited = started.elapsed();
        turn.behind_readers = if behind_readers {
            turn.behind_readers + 1
        } else {
            0
        };
        assert!(turn.waited <= DEADLINE, "{claim:?} is not granted");
    }
    Ok(())
}
