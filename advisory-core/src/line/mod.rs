//! The way to a session, for all who share it.

mod attendant;
mod bell;
mod call;
mod hush;
mod seat;
mod state;
mod ticket;
mod vitals;

use std::{
    collections::VecDeque,
    fmt,
    future::{Future, poll_fn},
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use futures::{future::BoxFuture, task::waker_ref};
use smallvec::{SmallVec, smallvec};

pub(crate) use self::{
    attendant::attend,
    call::Batch,
    vitals::{Vitals, is_ours},
};
use self::{
    bell::Bell,
    call::{Answer, Call},
    hush::Hush,
    seat::{Asked, Ended, Errand, Seat},
    state::State,
    ticket::Ticket,
};
use crate::{
    Error, FencingToken, Holder, LockKey, Options, Result,
    limit::in_time,
    spi::{Claim, LockSession, Request, Turn, Waited},
};

/// The way to a session: one call at a time, in the order of arrival. Batches that wait for the
/// session at the same moment travel as one.
///
/// A call belongs to the line, not to its caller. Whoever polls drives whatever is under way, his
/// own call or another's, so nobody waits for somebody who does not poll. If a caller goes away
/// before his call has begun it is forgotten; after that it is finished, and a claim that was
/// granted to nobody is unlocked. If nobody polls, the attendant does. So a cancelled call never
/// costs the session, nor what else it holds.
#[derive(Debug)]
pub(crate) struct Line {
    state: Mutex<State>,
    /// Wakes all who wait for an answer.
    bell: Arc<Bell>,
    vitals: Arc<Vitals>,
    /// Whose line this is, for the attendant.
    owner: Weak<dyn LineOwner>,
    /// How long the session may take to answer.
    answer_within: Duration,
    /// How long, while it holds something whose loss has to be seen in time.
    holder_answers_within: Duration,
    holds: AtomicBool,
    /// Whether the session learns of its end while it is asked nothing.
    notices_loss: bool,
}

/// Whoever has a line.
pub(crate) trait LineOwner: fmt::Debug + Send + Sync + 'static {
    fn line(&self) -> &Line;

    /// What is to be done when the attendant, who may be the last one to hold it, leaves it.
    fn leave(self: Arc<Self>) -> BoxFuture<'static, ()>;
}

/// How long those who have been answered together are given to ask together for more. As a rule they
/// need microseconds. A call that comes later is not kept by those who did not.
const BOARDING: Duration = Duration::from_millis(100);

/// When the next errand begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Departure {
    AtOnce,
    /// When those who have just been answered have had the time to ask for more: what one of them
    /// sent by himself would keep all others waiting for a round trip.
    WithOthers,
}

/// Names a call, and whoever listens to the bell for it.
pub(crate) type TicketId = u64;

/// Who listens to the bell without a call of his own. Both may at once.
#[derive(Clone, Copy, Debug)]
enum Listener {
    Attendant,
    Recycler,
}

impl Listener {
    fn id(self) -> TicketId {
        match self {
            Self::Attendant => TicketId::MAX,
            Self::Recycler => TicketId::MAX - 1,
        }
    }
}

impl Line {
    pub(crate) fn new(
        session: Box<dyn LockSession>,
        owner: Weak<dyn LineOwner>,
        vitals: Arc<Vitals>,
        options: &Options,
    ) -> Self {
        vitals.hear(session.id());
        Self {
            notices_loss: session.notices_loss(),
            state: Mutex::new(State {
                seat: Seat::Idle(session),
                queue: VecDeque::new(),
                ended: SmallVec::new(),
                debts: Vec::new(),
                boarding_until: None,
                attended: false,
                next_ticket: 0,
            }),
            bell: Arc::default(),
            vitals,
            owner,
            answer_within: options.answer_within,
            holder_answers_within: options.holder_answers_within(),
            holds: AtomicBool::new(false),
        }
    }

    pub(crate) async fn try_lock(&self, claim: Claim) -> Result<bool> {
        let done = self.submit(smallvec![Request::TryLock(claim)]).await?;
        Ok(done == [true])
    }

    /// See [`LockSession::submit`]. If the future is dropped, the claims are unlocked that it was to
    /// take, and also those that it was to give back.
    pub(crate) async fn submit(&self, batch: Batch) -> Result<Vec<bool>> {
        match self.call(Call::Submit(batch)).await? {
            Answer::Done(done) => Ok(done),
            _ => Err(no_answer()),
        }
    }

    pub(crate) async fn wait(&self, claim: Claim, turn: Turn) -> Result<Waited> {
        match self.call(Call::Wait(claim, turn)).await? {
            Answer::Waited(waited) => Ok(waited),
            _ => Err(no_answer()),
        }
    }

    /// Unlocks claims, before whatever is asked from now on, and also if the future is dropped.
    pub(crate) fn unlock<'a>(
        &'a self,
        claims: &[Claim],
    ) -> impl Future<Output = Result<()>> + use<'a> {
        let batch: Batch = claims.iter().copied().map(Request::Unlock).collect();
        let unlock = (!batch.is_empty()).then(|| self.call(Call::Submit(batch)));
        async move {
            match unlock {
                Some(unlock) => {
                    let answer = unlock.await;
                    self.or_lost(answer.map(drop))
                }
                None => self.check(),
            }
        }
    }

    pub(crate) async fn holders(&self, key: LockKey) -> Result<Vec<Holder>> {
        match self.call(Call::Holders(key)).await? {
            Answer::Holders(holders) => Ok(holders),
            _ => Err(no_answer()),
        }
    }

    pub(crate) async fn fencing_token(&self) -> Result<FencingToken> {
        match self.call(Call::FencingToken).await? {
            Answer::FencingToken(token) => Ok(token),
            _ => Err(no_answer()),
        }
    }

    /// Asks the session for a sign of life, unless it is in use and will give one anyway. No answer
    /// in time is a loss.
    pub(crate) async fn probe(&self, answer_within: Duration) -> Result<()> {
        let idle = matches!(self.state().seat, Seat::Idle(_));
        if !idle {
            // Whoever began a call may have no mind to poll it.
            self.have_attended(&mut self.state());
            return Ok(());
        }
        let answer = self.call(Call::Probe(answer_within)).await;
        self.or_lost(answer.map(drop))
    }

    /// Says whether the session holds anything.
    pub(crate) fn hold(&self, holds: bool) {
        self.holds.store(holds, Ordering::Relaxed);
    }

    /// How long the session may take to answer.
    pub(crate) fn answer_within(&self) -> Duration {
        if self.holds.load(Ordering::Relaxed) {
            self.holder_answers_within
        } else {
            self.answer_within
        }
    }

    pub(crate) fn notices_loss(&self) -> bool {
        self.notices_loss
    }

    /// Fails if the session is known to be gone. Nothing is asked.
    pub(crate) fn check(&self) -> Result<()> {
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

    /// Leaves unlocks to the line, for the next one who uses it or gives the session back.
    pub(crate) fn note_debts(&self, claims: impl IntoIterator<Item = Claim>) {
        self.state().debts.extend(claims);
    }

    /// Leaves unlocks to the line, and sees to them.
    pub(crate) fn owe(&self, claims: impl IntoIterator<Item = Claim>) {
        self.note_debts(claims);
        self.nudge();
    }

    /// Tells the session that nobody waits any more. That is for sessions which keep a place from turn
    /// to turn: they give it up when they are asked for something else, though it be nothing.
    pub(crate) fn end_wait(&self) {
        self.state().queue.push_back(Asked {
            call: Call::Submit(Batch::new()),
            ticket: None,
            alone: false,
        });
        self.nudge();
    }

    /// Whether the session is there, and nobody has anything for it to do.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.state().is_at_rest()
    }

    /// Whether all that goes on is an unlock that nobody waits for.
    pub(crate) fn is_only_unlocking(&self) -> bool {
        let state = self.state();
        let mut errand = state.seat.errand().iter();
        let unlocking = errand.all(|asked| asked.ticket.is_none() && asked.call.only_unlocks());
        !state.seat.errand().is_empty() && unlocking && state.queue.is_empty()
    }

    /// Whether somebody waits for the session.
    pub(crate) fn is_wanted(&self) -> bool {
        let state = self.state();
        !state.queue.is_empty() || !state.debts.is_empty()
    }

    /// Ends what is under way, and gives the session back to its pool.
    pub(crate) async fn recycle(&self) {
        while self.state().has_business() {
            poll_fn(|cx| self.poll_as(Listener::Recycler, cx)).await;
            // There may be answers whose callers have gone without a word.
            self.state().void_answers();
        }
        let seat = mem::replace(&mut self.state().seat, Seat::Lost(None));
        if let Seat::Idle(session) = seat {
            // A session that cannot be given back in time is dropped, which closes it.
            in_time(session.recycle(), self.answer_within).await;
        }
    }

    /// Works off all that is under way, whoever began it. For the attendant.
    pub(crate) fn poll_left_behind(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_as(Listener::Attendant, cx)
    }

    fn poll_as(&self, listener: Listener, cx: &mut Context<'_>) -> Poll<()> {
        let listener = listener.id();
        self.bell.listen(listener, cx.waker());
        {
            let _hush = Hush::new(&self.bell);
            let mut state = self.state();
            // Nobody else might notice if a backend has forgotten to wake its caller.
            self.bell.set_rung();
            ready!(self.drive(&mut state, Departure::AtOnce));
            state.attended = false;
        }
        self.bell.forget(listener);
        Poll::Ready(())
    }

    fn call(&self, call: Call) -> Ticket<'_> {
        let mut state = self.state();
        let id = state.next_ticket;
        state.next_ticket += 1;
        let asked = Asked {
            call,
            ticket: Some(id),
            alone: false,
        };
        if state.is_at_rest() && !state.is_boarding() {
            self.begin(&mut state, smallvec![asked]);
        } else {
            state.queue.push_back(asked);
        }
        drop(state);
        Ticket {
            line: self,
            id,
            answered: false,
            departure: Departure::WithOthers,
        }
    }

    /// Does what can be done without waiting: polls the call under way, and begins the next one.
    /// Ready when there is nothing left to do. Bells have to be quiet while the state is locked.
    fn drive(&self, state: &mut State, departure: Departure) -> Poll<()> {
        let waker = waker_ref(&self.bell);
        let mut cx = Context::from_waker(&waker);
        loop {
            // Many may come by while a statement is under way, and nothing has happened to it.
            if !state.seat.errand().is_empty() && !self.bell.take_rung() {
                return Poll::Pending;
            }
            let Poll::Ready(ended) = state.seat.poll(&mut cx) else {
                return Poll::Pending;
            };
            self.end(state, ended);
            if let Some(lost) = state.seat.lost() {
                state.debts.clear();
                let unasked = mem::take(&mut state.queue).into_iter();
                let ended = unasked.map(|asked| asked.ended(Err(lost.clone())));
                self.end(state, ended.collect());
                return Poll::Ready(());
            }
            let others = departure == Departure::WithOthers && !state.queue.is_empty();
            if others && state.is_boarding() {
                return Poll::Pending;
            }
            let errand = state.next_errand();
            if errand.is_empty() {
                return Poll::Ready(());
            }
            state.boarding_until = None;
            self.begin(state, errand);
        }
    }

    fn begin(&self, state: &mut State, errand: Errand) {
        state.seat.begin(errand, self.answer_within());
        self.bell.set_rung();
    }

    /// Takes note of how the session does, and keeps the answers for whoever wants them.
    fn end(&self, state: &mut State, ended: SmallVec<[Ended; 1]>) {
        if ended.is_empty() {
            return;
        }
        match &state.seat {
            Seat::Idle(session) => self.vitals.hear(session.id()),
            Seat::Lost(_) | Seat::Busy { .. } => self.vitals.lose(),
        }
        let together = ended.len() > 1;
        for mut ended in ended {
            if together && ended.answer.is_err() && matches!(state.seat, Seat::Idle(_)) {
                // The session holds nothing of what the batches named. So what was to be given back
                // is; whose fault it was with the others they find out one by one. Who asked for both
                // is told as if he had come alone, for his unlocks cannot be repeated.
                if ended.call.only_unlocks() {
                    let done = vec![true; ended.call.requests().len()];
                    ended.answer = Ok(Answer::Done(done));
                } else if ended.call.only_tries() {
                    state.queue.extend(ended.again());
                    continue;
                }
            }
            match ended.ticket {
                Some(ticket) => {
                    state.ended.push(ended);
                    self.bell.call(ticket);
                }
                None => state.debts.extend(ended.granted()),
            }
        }
        if together && matches!(state.seat, Seat::Idle(_)) {
            state.boarding_until = Some(Instant::now() + BOARDING);
            // Each of them begins what waits, if the others do not.
            let waiting = state.queue.iter().filter_map(|asked| asked.ticket);
            waiting.for_each(|ticket| self.bell.call(ticket));
        }
    }

    /// As [`drive`](Self::drive), where there is no task to be woken. What nobody else will see to
    /// is then for the attendant.
    pub(crate) fn nudge(&self) {
        let _hush = Hush::new(&self.bell);
        let mut state = self.state();
        let driven = self.drive(&mut state, Departure::AtOnce);
        if driven.is_pending() && state.has_orphans() {
            self.have_attended(&mut state);
        }
    }

    fn have_attended(&self, state: &mut State) {
        if !mem::replace(&mut state.attended, true) {
            attendant::settle(Weak::clone(&self.owner));
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

fn no_answer() -> Error {
    Error::backend("the session answered another question than the one asked")
}
