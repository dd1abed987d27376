use std::{
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use super::{Departure, Line, TicketId, call::Answer, hush::Hush, no_answer};
use crate::Result;

/// A call that is on its way. Its drop gives it up.
#[derive(Debug)]
#[must_use = "a call that is not awaited is given up"]
pub(super) struct Ticket<'a> {
    pub(super) line: &'a Line,
    pub(super) id: TicketId,
    pub(super) answered: bool,
    /// For the next poll.
    pub(super) departure: Departure,
}

impl Future for Ticket<'_> {
    type Output = Result<Answer>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Answer>> {
        // Whoever has his answer has nothing to drive.
        let ended = self.line.state().take_ended(self.id);
        if let Some(ended) = ended {
            return Poll::Ready(self.done(ended.answer));
        }
        self.line.bell.listen(self.id, cx.waker());
        let _hush = Hush::new(&self.line.bell);
        let mut state = self.line.state();
        let departure = mem::replace(&mut self.departure, Departure::WithOthers);
        let driven = self.line.drive(&mut state, departure);
        let answer = match state.take_ended(self.id) {
            Some(ended) => ended.answer,
            // Nothing is left to do, and there is no answer: a backend panicked while somebody
            // else was polling this call.
            None if driven.is_ready() => Err(state.seat.lost().unwrap_or_else(no_answer)),
            None => {
                if state.waits_for_others() {
                    // All who are to be polled before that have come by then.
                    self.line.bell.call(self.id);
                    drop(state);
                    self.departure = Departure::AtOnce;
                }
                return Poll::Pending;
            }
        };
        drop(state);
        Poll::Ready(self.done(answer))
    }
}

impl Ticket<'_> {
    fn done(&mut self, answer: Result<Answer>) -> Result<Answer> {
        // Whoever has his answer need not be woken for it any more, which would cost him another turn.
        self.line.bell.forget(self.id);
        self.answered = true;
        answer
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.line.bell.forget(self.id);
        }
        let leaves_orphans = {
            let mut state = self.line.state();
            if !self.answered {
                state.give_up(self.id);
            }
            state.has_orphans()
        };
        if leaves_orphans {
            self.line.nudge();
        }
    }
}
