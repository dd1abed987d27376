use std::{
    collections::VecDeque,
    fmt,
    future::{Future, poll_fn},
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use futures::future::select;
use futures_timer::Delay;

use super::{
    Owner, Vitals, attendant,
    bell::Bell,
    call::{Answer, Call},
    seat::{Ended, Seat},
};
use crate::{
    Error, FencingToken, Holder, LockKey, Result,
    spi::{Claim, LockSession, Turn, Waited},
};

/// The way to a session: one call at a time, in the order of arrival.
///
/// A call belongs to the line, not to its caller. Whoever polls drives whatever is under way, his
/// own call or another's, so nobody waits for somebody who does not poll. If a caller goes away
/// before his call has begun it is forgotten; after that it is finished, and a claim that was
/// granted to nobody is unlocked. If nobody polls, the attendant does. So a cancelled call never
/// costs the session, nor what else it holds.
#[derive(Debug)]
pub(super) struct Line {
    state: Mutex<State>,
    /// Wakes all who wait for an answer.
    bell: Arc<Bell>,
    vitals: Arc<Vitals>,
    /// Whose line this is, for the attendant.
    owner: Weak<Owner>,
    /// How long the session may take to answer.
    answer_within: Duration,
    /// Whether the session learns of its end while it is asked nothing.
    notices_loss: bool,
}

#[derive(Debug)]
struct State {
    seat: Seat,
    /// Calls that have not begun, in the order of their arrival.
    queue: VecDeque<(TicketId, Call)>,
    /// Calls that have ended, and what their callers have not come for yet.
    ended: Vec<Ended>,
    /// Claims that nobody holds any more. They are unlocked before the next call begins.
    debts: Vec<Claim>,
    /// Whether the attendant has been called, and is not done yet.
    attended: bool,
    next_ticket: TicketId,
}

/// Names a call, and whoever listens to the bell for it.
pub(super) type TicketId = u64;

impl Line {
    pub(super) fn new(
        session: Box<dyn LockSession>,
        owner: Weak<Owner>,
        vitals: Arc<Vitals>,
        answer_within: Duration,
    ) -> Self {
        vitals.hear(session.id());
        Self {
            notices_loss: session.notices_loss(),
            state: Mutex::new(State {
                seat: Seat::Idle(session),
                queue: VecDeque::new(),
                ended: Vec::new(),
                debts: Vec::new(),
                attended: false,
                next_ticket: 0,
            }),
            bell: Arc::default(),
            vitals,
            owner,
            answer_within,
        }
    }

    pub(super) async fn try_lock(&self, claim: Claim) -> Result<bool> {
        Ok(self.call(Call::TryLock(claim)).await?.is_yes())
    }

    pub(super) async fn wait(&self, claim: Claim, turn: Turn) -> Result<Waited> {
        match self.call(Call::Wait(claim, turn)).await? {
            Answer::Waited(waited) => Ok(waited),
            _ => Err(no_answer()),
        }
    }

    /// Unlocks a claim, also if the future is dropped.
    pub(super) async fn unlock(&self, claim: Claim) -> Result<()> {
        let answer = self.call(Call::Unlock(claim)).await;
        self.or_lost(answer.map(drop))
    }

    pub(super) async fn holders(&self, key: LockKey) -> Result<Vec<Holder>> {
        match self.call(Call::Holders(key)).await? {
            Answer::Holders(holders) => Ok(holders),
            _ => Err(no_answer()),
        }
    }

    pub(super) async fn fencing_token(&self) -> Result<FencingToken> {
        match self.call(Call::FencingToken).await? {
            Answer::FencingToken(token) => Ok(token),
            _ => Err(no_answer()),
        }
    }

    /// Asks the session for a sign of life, unless it is in use and will give one anyway. No answer
    /// in time is a loss.
    pub(super) async fn probe(&self, answer_within: Duration) -> Result<()> {
        let idle = matches!(self.state().seat, Seat::Idle(_));
        if !idle {
            // Whoever began a call may have no mind to poll it.
            self.have_attended(&mut self.state());
            return Ok(());
        }
        let answer = self.call(Call::Probe(answer_within)).await;
        self.or_lost(answer.map(drop))
    }

    pub(super) fn notices_loss(&self) -> bool {
        self.notices_loss
    }

    /// Fails if the session is known to be gone. Nothing is asked.
    pub(super) fn check(&self) -> Result<()> {
        if let Seat::Idle(session) = &self.state().seat
            && session.is_lost()
        {
            self.vitals.lose();
        }
        match self.lost() {
            Some(lost) => Err(lost),
            None if self.vitals.is_lost() => Err(Error::lost(None)),
            None => Ok(()),
        }
    }

    /// Leaves an unlock to the line. Needs no runtime.
    pub(super) fn owe(&self, claim: Claim) {
        self.state().debts.push(claim);
        self.nudge();
    }

    /// Whether somebody waits for the session.
    pub(super) fn is_wanted(&self) -> bool {
        let state = self.state();
        !state.queue.is_empty() || !state.debts.is_empty()
    }

    /// Ends what is under way, and gives the session back to its pool.
    pub(super) async fn end(&self) {
        poll_fn(|cx| self.poll_left_behind(cx)).await;
        let seat = mem::replace(&mut self.state().seat, Seat::Lost(None));
        if let Seat::Idle(session) = seat {
            // A session that cannot be given back in time is dropped, which closes it.
            select(session.recycle(), Delay::new(self.answer_within)).await;
        }
    }

    /// Works off all that is under way, whoever began it.
    pub(super) fn poll_left_behind(&self, cx: &mut Context<'_>) -> Poll<()> {
        const ATTENDANT: TicketId = TicketId::MAX;
        self.bell.listen(ATTENDANT, cx.waker());
        let mut state = self.state();
        ready!(self.drive(&mut state));
        state.attended = false;
        self.bell.forget(ATTENDANT);
        Poll::Ready(())
    }

    fn call(&self, call: Call) -> Ticket<'_> {
        let mut state = self.state();
        let id = state.next_ticket;
        state.next_ticket += 1;
        state.queue.push_back((id, call));
        Ticket {
            line: self,
            id,
            answered: false,
        }
    }

    /// Does what can be done without waiting: polls the call under way, and begins the next one.
    /// Ready when there is nothing left to do.
    fn drive(&self, state: &mut State) -> Poll<()> {
        let waker = Waker::from(Arc::clone(&self.bell));
        let mut cx = Context::from_waker(&waker);
        loop {
            match state.seat.poll(&mut cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(ended)) => self.end_call(state, ended),
                Poll::Ready(None) => {}
            }
            if let Some(lost) = state.seat.lost() {
                state.debts.clear();
                for (ticket, call) in mem::take(&mut state.queue) {
                    let ticket = Some(ticket);
                    let answer = Err(lost.clone());
                    self.end_call(
                        state,
                        Ended {
                            call,
                            ticket,
                            answer,
                        },
                    );
                }
                return Poll::Ready(());
            }
            let (ticket, call) = if state.debts.is_empty() {
                match state.queue.pop_front() {
                    Some((ticket, call)) => (Some(ticket), call),
                    None => return Poll::Ready(()),
                }
            } else {
                (None, Call::Pay(mem::take(&mut state.debts)))
            };
            state.seat.begin(call, ticket, self.answer_within);
        }
    }

    /// Takes note of how the session does, and keeps the answer for whoever wants it.
    fn end_call(&self, state: &mut State, ended: Ended) {
        match &state.seat {
            Seat::Idle(session) => self.vitals.hear(session.id()),
            Seat::Lost(_) | Seat::Busy { .. } => self.vitals.lose(),
        }
        match ended.ticket {
            Some(ticket) => {
                state.ended.push(ended);
                self.bell.call(ticket);
            }
            None => state.debts.extend(ended.granted()),
        }
    }

    /// As [`drive`](Self::drive), where there is no task to be woken. What nobody else will see to
    /// is then for the attendant.
    fn nudge(&self) {
        let mut state = self.state();
        if self.drive(&mut state).is_pending() && state.has_orphans() {
            self.have_attended(&mut state);
        }
    }

    fn have_attended(&self, state: &mut State) {
        if !mem::replace(&mut state.attended, true) {
            attendant::attend(Weak::clone(&self.owner));
        }
    }

    /// The loss, if the session is lost by now, whatever came of a call.
    fn or_lost(&self, outcome: Result<()>) -> Result<()> {
        self.lost().map_or(outcome, Err)
    }

    fn lost(&self) -> Option<Error> {
        self.state().seat.lost()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic can only have come out of a backend, and has lost the session then.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that is on its way. Its drop gives it up.
#[derive(Debug)]
#[must_use = "a call that is not awaited is given up"]
struct Ticket<'a> {
    line: &'a Line,
    id: TicketId,
    answered: bool,
}

impl Future for Ticket<'_> {
    type Output = Result<Answer>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Answer>> {
        self.line.bell.listen(self.id, cx.waker());
        let mut state = self.line.state();
        let driven = self.line.drive(&mut state);
        let answer = match state.take_ended(self.id) {
            Some(ended) => ended.answer,
            // Nothing is left to do, and there is no answer: a backend panicked while somebody
            // else was polling this call.
            None if driven.is_ready() => Err(state.seat.lost().unwrap_or_else(no_answer)),
            None => return Poll::Pending,
        };
        drop(state);
        self.answered = true;
        Poll::Ready(answer)
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.line.bell.forget(self.id);
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

impl State {
    fn take_ended(&mut self, ticket: TicketId) -> Option<Ended> {
        let mut ended = self.ended.iter();
        let at = ended.position(|ended| ended.ticket == Some(ticket))?;
        Some(self.ended.swap_remove(at))
    }

    /// The caller has gone. What the session took for him, or was to unlock, nobody holds.
    fn give_up(&mut self, ticket: TicketId) {
        if let Some(ended) = self.take_ended(ticket) {
            self.debts.extend(ended.granted());
        }
        if let Seat::Busy { ticket: of, .. } = &mut self.seat
            && *of == Some(ticket)
        {
            *of = None;
        }
        if let Some(at) = self.queue.iter().position(|(id, _)| *id == ticket)
            && let Some((_, Call::Unlock(claim))) = self.queue.remove(at)
        {
            self.debts.push(claim);
        }
    }

    /// Whether there is something to do that no caller waits for.
    fn has_orphans(&self) -> bool {
        let unwanted = matches!(self.seat, Seat::Busy { ticket: None, .. });
        unwanted || !self.debts.is_empty()
    }
}

impl Ended {
    /// What the session has taken by this call.
    fn granted(&self) -> Option<Claim> {
        let granted = self.answer.as_ref().is_ok_and(Answer::is_yes);
        self.call.takes().filter(|_| granted)
    }
}

fn no_answer() -> Error {
    Error::backend("the session answered another question than the one asked")
}

impl fmt::Debug for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ended")
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}
