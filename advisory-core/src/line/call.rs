use std::time::Duration;

use smallvec::{SmallVec, smallvec};

use crate::{
    Error, FencingToken, Holder, LockKey, Result,
    limit::in_time,
    spi::{Claim, LockSession, Request, Turn, Waited},
};

/// Requests that travel together, nearly always a single one.
pub(crate) type Batch = SmallVec<[Request; 1]>;

/// What a session can be asked.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Submit(Batch),
    Wait(Claim, Turn),
    Holders(LockKey),
    FencingToken,
    /// Has to be answered within this time.
    Probe(Duration),
}

#[derive(Clone, Debug)]
pub(super) enum Answer {
    Done(Vec<bool>),
    Waited(Waited),
    Holders(Vec<Holder>),
    FencingToken(FencingToken),
    Alive,
}

/// How a call ended.
pub(super) type Answered = (Box<dyn LockSession>, Result<Answer>);

impl Call {
    /// How long the session may take for this.
    fn limit(&self, session: &dyn LockSession, answer_within: Duration) -> Duration {
        match self {
            Self::Probe(limit) => *limit,
            Self::Wait(_, turn) => {
                let lasts = turn.patience.unwrap_or(Turn::LONGEST);
                let in_a_cycle = session.finds_deadlocks_within().unwrap_or_default();
                let in_a_cycle = in_a_cycle.min(turn.patience_in_a_cycle.unwrap_or(in_a_cycle));
                answer_within.saturating_add(lasts.max(in_a_cycle).min(Turn::LONGEST))
            }
            _ => answer_within,
        }
    }

    /// The requests of a batch.
    pub(super) fn requests(&self) -> &[Request] {
        match self {
            Self::Submit(requests) => requests,
            _ => &[],
        }
    }

    /// Whether this is a batch that gives claims back and takes none.
    pub(super) fn only_unlocks(&self) -> bool {
        let requests = self.requests();
        !requests.is_empty() && requests.iter().all(|request| request.is_unlock())
    }

    /// Whether this is a batch that takes claims and gives none back.
    pub(super) fn only_tries(&self) -> bool {
        let requests = self.requests();
        !requests.is_empty() && !requests.iter().any(|request| request.is_unlock())
    }

    /// What the session has taken, if this was its answer.
    pub(super) fn granted(&self, answer: &Answer) -> SmallVec<[Claim; 1]> {
        match (self, answer) {
            (Self::Submit(requests), Answer::Done(done)) => {
                let done = requests.iter().zip(done);
                let taken = done.filter(|(request, done)| **done && !request.is_unlock());
                taken.map(|(request, _)| request.claim()).collect()
            }
            (Self::Wait(claim, _), Answer::Waited(Waited::Granted)) => smallvec![*claim],
            _ => SmallVec::new(),
        }
    }

    /// Whether the answer says that a claim was not there to be given back.
    pub(super) fn misses_a_claim(&self, answer: &Answer) -> bool {
        match answer {
            Answer::Done(done) => {
                let mut done = self.requests().iter().zip(done);
                done.any(|(request, done)| request.is_unlock() && !*done)
            }
            _ => false,
        }
    }
}

/// Makes a call, and gives the session up if it does not answer in time.
pub(super) async fn perform(
    mut session: Box<dyn LockSession>,
    call: Call,
    answer_within: Duration,
) -> Answered {
    let limit = call.limit(&*session, answer_within);
    let answer = in_time(ask(&mut *session, call), limit).await;
    let answer = answer.unwrap_or_else(|| Err(Error::unanswered(limit)));
    (session, answer)
}

async fn ask(session: &mut dyn LockSession, call: Call) -> Result<Answer> {
    match call {
        Call::Submit(batch) => session.submit(&batch).await.map(Answer::Done),
        Call::Wait(claim, turn) => session.wait(claim, turn).await.map(Answer::Waited),
        Call::Holders(key) => session.holders(key).await.map(Answer::Holders),
        Call::FencingToken => session.fencing_token().await.map(Answer::FencingToken),
        Call::Probe(_) => session.probe().await.map(|()| Answer::Alive),
    }
}
