use std::{collections::VecDeque, mem, time::Instant};

use smallvec::SmallVec;

use super::{
    TicketId,
    call::Call,
    seat::{Asked, Ended, Errand, Seat},
};
use crate::spi::{Claim, Request};

/// The session of a line, and what there is for it to do.
#[derive(Debug)]
pub(super) struct State {
    pub(super) seat: Seat,
    /// Calls that have not begun, in the order of their arrival.
    pub(super) queue: VecDeque<Asked>,
    /// Calls that have ended, and what their callers have not come for yet.
    pub(super) ended: SmallVec<[Ended; 1]>,
    /// Claims that nobody holds any more. They are unlocked before the next call begins.
    pub(super) debts: Vec<Claim>,
    /// So long those are waited for who have had their answers together, and may be about to ask for
    /// more.
    pub(super) boarding_until: Option<Instant>,
    /// Whether the attendant has been called, and is not done yet.
    pub(super) attended: bool,
    pub(super) next_ticket: TicketId,
}

impl State {
    pub(super) fn is_boarding(&self) -> bool {
        self.boarding_until
            .is_some_and(|until| Instant::now() < until)
    }

    /// Whether there is anything to be done before the session can be given back.
    pub(super) fn has_business(&self) -> bool {
        let is_idle = self.seat.errand().is_empty() && self.queue.is_empty();
        !is_idle || !self.debts.is_empty() || !self.ended.is_empty()
    }

    /// Whether the next call has not begun, though nothing is under way.
    pub(super) fn waits_for_others(&self) -> bool {
        self.seat.errand().is_empty() && !self.queue.is_empty()
    }

    /// Nobody will come for the answers any more: what they granted is unlocked.
    pub(super) fn void_answers(&mut self) {
        let granted = self.ended.drain(..).flat_map(|ended| ended.granted());
        self.debts.extend(granted);
    }

    /// Whether the session is there, and has nothing to do.
    pub(super) fn is_at_rest(&self) -> bool {
        let idle = matches!(&self.seat, Seat::Idle(session) if !session.is_lost());
        idle && self.queue.is_empty() && self.debts.is_empty()
    }

    pub(super) fn take_ended(&mut self, ticket: TicketId) -> Option<Ended> {
        let mut ended = self.ended.iter();
        let at = ended.position(|ended| ended.ticket == Some(ticket))?;
        Some(self.ended.swap_remove(at))
    }

    /// The caller has gone. What the session took for him, or was to unlock, nobody holds.
    pub(super) fn give_up(&mut self, ticket: TicketId) {
        if let Some(ended) = self.take_ended(ticket) {
            self.debts.extend(ended.granted());
        }
        if let Seat::Busy { errand, .. } = &mut self.seat {
            let of_ticket = errand
                .iter_mut()
                .filter(|asked| asked.ticket == Some(ticket));
            of_ticket.for_each(|asked| asked.ticket = None);
        }
        let mut queue = self.queue.iter();
        if let Some(at) = queue.position(|asked| asked.ticket == Some(ticket))
            && let Some(asked) = self.queue.remove(at)
        {
            let unlocks = asked.call.requests().iter();
            let unlocks = unlocks.filter(|request| request.is_unlock());
            self.debts.extend(unlocks.map(|request| request.claim()));
        }
    }

    /// What goes to the session next: what is owed, with all batches that wait; or the call whose
    /// turn it is.
    pub(super) fn next_errand(&mut self) -> Errand {
        let mut errand = Errand::new();
        if !self.debts.is_empty() {
            let unlocks = mem::take(&mut self.debts).into_iter();
            errand.push(Asked {
                call: Call::Submit(unlocks.map(Request::Unlock).collect()),
                ticket: None,
                alone: false,
            });
        }
        while let Some(next) = self.queue.front() {
            let together = !next.alone && matches!(next.call, Call::Submit(_));
            if !together && !errand.is_empty() {
                break;
            }
            errand.extend(self.queue.pop_front());
            if !together {
                break;
            }
        }
        // What is given back first, others can have sooner.
        if errand.len() > 1 {
            errand.sort_by_key(|asked| !asked.call.only_unlocks());
        }
        errand
    }

    /// Whether there is something to do that no caller waits for.
    pub(super) fn has_orphans(&self) -> bool {
        let errand = self.seat.errand();
        let unwanted = errand.iter().all(|asked| asked.ticket.is_none());
        let mut queue = self.queue.iter();
        !errand.is_empty() && unwanted
            || !self.debts.is_empty()
            || queue.any(|asked| asked.ticket.is_none())
    }
}
