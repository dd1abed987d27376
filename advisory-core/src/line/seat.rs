use std::{
    fmt, mem,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use smallvec::{SmallVec, smallvec};

use super::{
    TicketId,
    call::{Answer, Answered, Call, perform},
    hush,
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
pub(super) type Errand = SmallVec<[Asked; 1]>;

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
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<SmallVec<[Ended; 1]>> {
        // Out of its place while it is polled, so that a backend that panics loses the session
        // and is never polled again.
        let (errand, mut future) = match mem::replace(self, Self::Lost(None)) {
            Self::Busy { errand, future } => (errand, future),
            other => {
                *self = other;
                return Poll::Ready(SmallVec::new());
            }
        };
        let Poll::Ready((session, answer)) = future.as_mut().poll(cx) else {
            *self = Self::Busy { errand, future };
            return Poll::Pending;
        };
        let is_probe = matches!(&errand[..], [asked] if matches!(asked.call, Call::Probe(_)));
        let error = answer.as_ref().err();
        let cause = error.map(Error::cause);
        let goes_on = match error {
            None => true,
            // Whatever may be the matter with it, nobody can rely on it.
            Some(error) => !is_probe && !error.is_unanswered() && !session.is_lost(),
        };
        let ended = deliver(errand, answer);
        // What the server does not know we hold, it may have given to others.
        *self = if goes_on && !ended.iter().any(Ended::misses_a_claim) {
            Self::Idle(session)
        } else {
            hush::drop_later(session);
            Self::Lost(cause)
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
fn deliver(mut errand: Errand, answer: Result<Answer>) -> SmallVec<[Ended; 1]> {
    if errand.len() == 1
        && let Some(asked) = errand.pop()
    {
        return smallvec![asked.ended(answer)];
    }
    let mut done = match &answer {
        Ok(Answer::Done(done)) => Some(done.iter().copied()),
        _ => None,
    };
    let ended = errand.into_iter().map(|asked| {
        let answer = match &mut done {
            Some(done) => {
                let done = done.by_ref().take(asked.call.requests().len());
                Ok(Answer::Done(done.collect()))
            }
            None => answer.clone(),
        };
        asked.ended(answer)
    });
    ended.collect()
}

impl Asked {
    pub(super) fn ended(self, answer: Result<Answer>) -> Ended {
        let Self { call, ticket, .. } = self;
        Ended {
            call,
            ticket,
            answer,
        }
    }
}

impl Ended {
    /// What the session has taken by this call.
    pub(super) fn granted(&self) -> SmallVec<[Claim; 1]> {
        let answer = self.answer.as_ref();
        answer.map_or_else(|_| SmallVec::new(), |answer| self.call.granted(answer))
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
