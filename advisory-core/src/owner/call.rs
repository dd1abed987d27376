use std::{pin::pin, time::Duration};

use futures::future::{Either, select};
use futures_timer::Delay;

use crate::{
    Error, FencingToken, Holder, LockKey, Result,
    spi::{Claim, LockSession, Request, Turn, Waited},
};

/// What a session can be asked.
#[derive(Clone, Debug)]
pub(super) enum Call {
    TryLock(Claim),
    Wait(Claim, Turn),
    Unlock(Claim),
    /// Unlocks what nobody holds any more.
    Pay(Vec<Claim>),
    Holders(LockKey),
    FencingToken,
    /// Has to be answered within this time.
    Probe(Duration),
}

pub(super) enum Answer {
    Done(Vec<bool>),
    Waited(Waited),
    Holders(Vec<Holder>),
    FencingToken(FencingToken),
    Alive,
}

/// How a call ended. Without the session, if that has not answered in time.
pub(super) type Answered = (Option<Box<dyn LockSession>>, Result<Answer>);

impl Answer {
    /// Whether the answer to one request, or to a wait, is yes.
    pub(super) fn is_yes(&self) -> bool {
        match self {
            Self::Done(done) => *done == [true],
            Self::Waited(waited) => *waited == Waited::Granted,
            Self::Holders(_) | Self::FencingToken(_) | Self::Alive => false,
        }
    }
}

impl Call {
    /// How long the session may take for this.
    fn limit(&self, answer_within: Duration) -> Duration {
        match self {
            Self::Probe(limit) => *limit,
            Self::Wait(_, turn) => {
                let lasts = turn.patience.unwrap_or(Turn::LONGEST);
                answer_within.saturating_add(lasts.min(Turn::LONGEST))
            }
            _ => answer_within,
        }
    }

    pub(super) fn unlocks(&self) -> bool {
        matches!(self, Self::Unlock(_) | Self::Pay(_))
    }

    /// What the session holds if the answer is yes.
    pub(super) fn takes(&self) -> Option<Claim> {
        match self {
            Self::TryLock(claim) | Self::Wait(claim, _) => Some(*claim),
            _ => None,
        }
    }
}

/// Makes a call, and gives the session up if it does not answer in time.
pub(super) async fn perform(
    mut session: Box<dyn LockSession>,
    call: Call,
    answer_within: Duration,
) -> Answered {
    let limit = call.limit(answer_within);
    let answer = {
        let asked = pin!(ask(&mut *session, call));
        match select(asked, Delay::new(limit)).await {
            Either::Left((answer, _)) => Some(answer),
            Either::Right(_) => None,
        }
    };
    match answer {
        Some(answer) => (Some(session), answer),
        None => (None, Err(Error::unanswered(limit))),
    }
}

async fn ask(session: &mut dyn LockSession, call: Call) -> Result<Answer> {
    let batch: Vec<_> = match call {
        Call::Wait(claim, turn) => return session.wait(claim, turn).await.map(Answer::Waited),
        Call::Holders(key) => return session.holders(key).await.map(Answer::Holders),
        Call::FencingToken => return session.fencing_token().await.map(Answer::FencingToken),
        Call::Probe(_) => return session.probe().await.map(|()| Answer::Alive),
        Call::TryLock(claim) => vec![Request::TryLock(claim)],
        Call::Unlock(claim) => vec![Request::Unlock(claim)],
        Call::Pay(claims) => claims.into_iter().map(Request::Unlock).collect(),
    };
    session.submit(&batch).await.map(Answer::Done)
}
