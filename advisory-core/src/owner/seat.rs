use std::{
    fmt, mem,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;

use super::{
    call::{Answer, Answered, Call, perform},
    line::TicketId,
};
use crate::{Cause, Error, Result, spi::LockSession};

/// The session, and what it is doing.
pub(super) enum Seat {
    Idle(Box<dyn LockSession>),
    Busy {
        call: Call,
        /// Whose call it is; `None` if nobody wants to know the answer.
        ticket: Option<TicketId>,
        future: BoxFuture<'static, Answered>,
    },
    /// The session has ended, for this reason if it is known.
    Lost(Option<Cause>),
}

/// A call that has ended.
pub(super) struct Ended {
    pub(super) call: Call,
    pub(super) ticket: Option<TicketId>,
    pub(super) answer: Result<Answer>,
}

impl Seat {
    /// Begins a call on the idle session. Its future owns the session until it ends.
    pub(super) fn begin(&mut self, call: Call, ticket: Option<TicketId>, answer_within: Duration) {
        *self = match mem::replace(self, Self::Lost(None)) {
            Self::Idle(session) => Self::Busy {
                future: Box::pin(perform(session, call.clone(), answer_within)),
                call,
                ticket,
            },
            other => other,
        };
    }

    /// Polls the call under way, if there is one.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ended>> {
        // Out of its place while it is polled, so that a backend that panics loses the session
        // and is never polled again.
        let (call, ticket, mut future) = match mem::replace(self, Self::Lost(None)) {
            Self::Busy {
                call,
                ticket,
                future,
            } => (call, ticket, future),
            other => {
                *self = other;
                return Poll::Ready(None);
            }
        };
        let Poll::Ready((session, answer)) = future.as_mut().poll(cx) else {
            *self = Self::Busy {
                call,
                ticket,
                future,
            };
            return Poll::Pending;
        };
        *self = match (session, &answer) {
            // What the server does not know we hold, it may have given to others.
            (_, Ok(Answer::Done(done))) if call.unlocks() && done.contains(&false) => {
                Self::Lost(None)
            }
            (Some(session), Ok(_)) => Self::Idle(session),
            // Whatever may be the matter with it, nobody can rely on it.
            (_, Err(error)) if matches!(call, Call::Probe(_)) => Self::Lost(Some(error.cause())),
            (Some(session), Err(_)) if !session.is_lost() => Self::Idle(session),
            (_, answer) => Self::Lost(answer.as_ref().err().map(Error::cause)),
        };
        Poll::Ready(Some(Ended {
            call,
            ticket,
            answer,
        }))
    }

    /// The loss, if the session is lost.
    pub(super) fn lost(&self) -> Option<Error> {
        match self {
            Self::Lost(cause) => Some(Error::lost(cause.clone())),
            Self::Idle(_) | Self::Busy { .. } => None,
        }
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle(session) => f.debug_tuple("Idle").field(session).finish(),
            Self::Busy { call, .. } => f.debug_tuple("Busy").field(call).finish(),
            Self::Lost(cause) => f.debug_tuple("Lost").field(cause).finish(),
        }
    }
}
