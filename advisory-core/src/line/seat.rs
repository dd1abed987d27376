use std::{
    fmt, mem,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;

use super::{
    TicketId,
    call::{Answer, Answered, Call, perform},
};
use crate::{
    Cause, Error, Result,
    spi::{Claim, LockSession},
};

/// The session, and what it is doing.
pub(super) enum Seat {
    Idle(Box<dyn LockSession>),
    Busy {
        errand: Errand,
        future: BoxFuture<'static, Answered>,
    },
    /// The session has ended, for this reason if it is known.
    Lost(Option<Cause>),
}

/// One call, or the batches of several callers that travel as one.
pub(super) type Errand = Vec<Asked>;

/// A call of somebody's.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) call: Call,
    /// Whose call it is; `None` if nobody wants to know the answer.
    pub(super) ticket: Option<TicketId>,
    /// Whether it has to travel alone.
    pub(super) alone: bool,
}

/// A call that has ended.
pub(super) struct Ended {
    pub(super) call: Call,
    pub(super) ticket: Option<TicketId>,
    pub(super) answer: Result<Answer>,
}

impl Seat {
    /// Begins an errand on the idle session. Its future owns the session until it ends.
    pub(super) fn begin(&mut self, errand: Errand, answer_within: Duration) {
        let call = match &errand[..] {
            [] => return,
            [asked] => asked.call.clone(),
            batches => {
                let requests = batches.iter().flat_map(|asked| asked.call.requests());
                Call::Submit(requests.copied().collect())
            }
        };
        *self = match mem::replace(self, Self::Lost(None)) {
            Self::Idle(session) => Self::Busy {
                errand,
                future: Box::pin(perform(session, call, answer_within)),
            },
            other => other,
        };
    }

    /// Polls the errand under way, if there is one.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Vec<Ended>> {
        // Out of its place while it is polled, so that a backend that panics loses the session
        // and is never polled again.
        let (errand, mut future) = match mem::replace(self, Self::Lost(None)) {
            Self::Busy { errand, future } => (errand, future),
            other => {
                *self = other;
                return Poll::Ready(Vec::new());
            }
        };
        let Poll::Ready((session, answer)) = future.as_mut().poll(cx) else {
            *self = Self::Busy { errand, future };
            return Poll::Pending;
        };
        let is_probe = matches!(&errand[..], [asked] if matches!(asked.call, Call::Probe(_)));
        let ended = deliver(errand, answer.clone());
        // What the server does not know we hold, it may have given to others.
        let misses_a_claim = ended.iter().any(Ended::misses_a_claim);
        *self = match (session, answer) {
            (_, Ok(_)) if misses_a_claim => Self::Lost(None),
            (Some(session), Ok(_)) => Self::Idle(session),
            // Whatever may be the matter with it, nobody can rely on it.
            (_, Err(error)) if is_probe => Self::Lost(Some(error.cause())),
            (Some(session), Err(_)) if !session.is_lost() => Self::Idle(session),
            (_, answer) => Self::Lost(answer.err().map(|error| error.cause())),
        };
        Poll::Ready(ended)
    }

    /// What is under way; empty if nothing is.
    pub(super) fn errand(&self) -> &[Asked] {
        match self {
            Self::Busy { errand, .. } => errand,
            Self::Idle(_) | Self::Lost(_) => &[],
        }
    }

    /// The loss, if the session is lost.
    pub(super) fn lost(&self) -> Option<Error> {
        match self {
            Self::Lost(cause) => Some(Error::lost(cause.clone())),
            Self::Idle(_) | Self::Busy { .. } => None,
        }
    }
}

/// Gives each caller his part of the answer.
fn deliver(errand: Errand, answer: Result<Answer>) -> Vec<Ended> {
    let mut done = match (&errand[..], &answer) {
        ([_, _, ..], Ok(Answer::Done(done))) => Some(done.clone().into_iter()),
        _ => None,
    };
    let ended = errand.into_iter().map(|Asked { call, ticket, .. }| {
        let answer = match &mut done {
            Some(done) => Ok(Answer::Done(
                done.by_ref().take(call.requests().len()).collect(),
            )),
            None => answer.clone(),
        };
        Ended {
            call,
            ticket,
            answer,
        }
    });
    ended.collect()
}

impl Ended {
    /// What the session has taken by this call.
    pub(super) fn granted(&self) -> Vec<Claim> {
        let answer = self.answer.as_ref();
        answer.map_or_else(|_| Vec::new(), |answer| self.call.granted(answer))
    }

    /// The same call once more, by itself, if somebody still wants it.
    pub(super) fn again(self) -> Option<Asked> {
        self.ticket.map(|ticket| Asked {
            call: self.call,
            ticket: Some(ticket),
            alone: true,
        })
    }

    fn misses_a_claim(&self) -> bool {
        let answer = self.answer.as_ref();
        answer.is_ok_and(|answer| self.call.misses_a_claim(answer))
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle(session) => f.debug_tuple("Idle").field(session).finish(),
            Self::Busy { errand, .. } => f.debug_tuple("Busy").field(errand).finish(),
            Self::Lost(cause) => f.debug_tuple("Lost").field(cause).finish(),
        }
    }
}

impl fmt::Debug for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ended")
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}
