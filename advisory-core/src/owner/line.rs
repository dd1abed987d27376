use std::{
    fmt,
    future::poll_fn,
    mem,
    ops::{Deref, DerefMut},
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use async_lock::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard};
use futures::future::{BoxFuture, Either, select};
use futures_timer::Delay;

use super::{Owner, Vitals, attendant};
use crate::{
    Cause, Error, FencingToken, Holder, LockKey, Result,
    spi::{Claim, LockSession, Request, Turn, Waited},
};

/// The way to a session: one call at a time, in the order of arrival.
///
/// A call that was begun belongs to the line, not to its caller. If the caller goes away in the
/// middle, whoever comes next polls the call to its end first, and a claim that was granted to
/// nobody is unlocked; if nobody comes, the attendant does. So a cancelled call never costs the
/// session, nor what else it holds.
#[derive(Debug)]
pub(super) struct Line {
    seat: AsyncMutex<Seat>,
    /// How many wait for the seat.
    queue: AtomicUsize,
    /// Claims that nobody holds any more, to be unlocked by whoever has the seat.
    debts: Mutex<Vec<Claim>>,
    vitals: Arc<Vitals>,
    /// Whose line this is, for the attendant.
    owner: Weak<Owner>,
    /// How long the session may take to answer.
    answer_within: Duration,
    /// Whether the session learns of its end while it is asked nothing.
    notices_loss: bool,
}

/// The session, and what it is doing.
enum Seat {
    Idle(Box<dyn LockSession>),
    Busy {
        call: Call,
        future: BoxFuture<'static, Answered>,
    },
    /// The session has ended, for this reason if it is known.
    Lost(Option<Cause>),
}

/// How a call ended. Without the session, if that has not answered in time.
type Answered = (Option<Box<dyn LockSession>>, Result<Answer>);

#[derive(Clone, Debug)]
enum Call {
    TryLock(Claim),
    Wait(Claim, Turn),
    Unlock(Claim),
    Pay(Vec<Claim>),
    Holders(LockKey),
    FencingToken,
    Probe,
}

enum Answer {
    Done(Vec<bool>),
    Waited(Waited),
    Holders(Vec<Holder>),
    FencingToken(FencingToken),
    Alive,
}

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
            seat: AsyncMutex::new(Seat::Idle(session)),
            queue: AtomicUsize::new(0),
            debts: Mutex::default(),
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

    /// Unlocks a claim. If the future is dropped before the call was begun, the unlock becomes a
    /// debt; after that the call is the line's.
    pub(super) async fn unlock(&self, claim: Claim) -> Result<()> {
        let debt = Debt { line: self, claim };
        let mut seat = self.settled().await?;
        mem::forget(debt);
        seat.begin(Call::Unlock(claim), self.answer_within);
        let answer = poll_fn(|cx| self.poll(&mut seat, cx)).await;
        match (&*seat, answer) {
            (Seat::Lost(_), _) => Err(seat.lost()),
            (_, answer) => answer.map(drop),
        }
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

    /// Asks the session for a sign of life, unless somebody is using it and will hear one way or
    /// the other. No answer in time is a loss.
    pub(super) async fn probe(&self, answer_within: Duration) -> Result<()> {
        let Some(seat) = self.seat.try_lock() else {
            return Ok(());
        };
        let mut seat = Seated {
            seat,
            _leaving: Leaving(self),
        };
        if matches!(*seat, Seat::Idle(_)) {
            seat.begin(Call::Probe, answer_within);
            poll_fn(|cx| self.poll(&mut seat, cx)).await.map(drop)
        } else {
            Ok(())
        }
        .map_err(|error| match &*seat {
            Seat::Lost(_) => seat.lost(),
            _ => error,
        })
    }

    pub(super) fn notices_loss(&self) -> bool {
        self.notices_loss
    }

    /// Fails if the session is known to be gone. Nothing is asked.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(seat) = self.seat.try_lock() {
            match &*seat {
                Seat::Lost(_) => return Err(seat.lost()),
                Seat::Idle(session) if session.is_lost() => self.vitals.lose(),
                Seat::Idle(_) | Seat::Busy { .. } => {}
            }
        }
        if self.vitals.is_lost() {
            return Err(Error::lost(None));
        }
        Ok(())
    }

    /// Leaves an unlock to whoever uses the session next, and sends it now if nobody does. Needs
    /// no runtime.
    pub(super) fn owe(&self, claim: Claim) {
        self.debts().push(claim);
        self.nudge();
    }

    /// Whether somebody waits for the session.
    pub(super) fn is_wanted(&self) -> bool {
        self.queue.load(Ordering::Relaxed) > 0 || !self.debts().is_empty()
    }

    /// Ends what is under way, and gives the session back to its pool.
    pub(super) async fn end(&self) {
        let Ok(mut seat) = self.settled().await else {
            return;
        };
        if let Seat::Idle(session) = mem::replace(&mut *seat, Seat::Lost(None)) {
            // A session that cannot be given back in time is dropped, which closes it.
            select(session.recycle(), Delay::new(self.answer_within)).await;
        }
    }

    async fn call(&self, call: Call) -> Result<Answer> {
        let mut seat = self.settled().await?;
        seat.begin(call, self.answer_within);
        poll_fn(|cx| self.poll(&mut seat, cx)).await
    }

    /// The seat, with the session idle and all debts paid.
    async fn settled(&self) -> Result<Seated<'_>> {
        let mut seat = {
            let _queueing = Queueing::new(&self.queue);
            Seated {
                seat: self.seat.lock().await,
                _leaving: Leaving(self),
            }
        };
        poll_fn(|cx| self.settle(&mut seat, cx)).await;
        match &*seat {
            Seat::Lost(_) => Err(seat.lost()),
            _ => Ok(seat),
        }
    }

    /// Polls what others have left behind to its end, and pays the debts.
    fn settle(&self, seat: &mut Seat, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Seat::Busy { call, .. } = &*seat {
                let call = call.clone();
                let granted = ready!(self.poll(seat, cx)).is_ok_and(|answer| answer.is_yes());
                if let (Call::TryLock(claim) | Call::Wait(claim, _), true) = (call, granted) {
                    self.debts().push(claim);
                }
            }
            let debts = mem::take(&mut *self.debts());
            if debts.is_empty() || matches!(seat, Seat::Lost(_)) {
                return Poll::Ready(());
            }
            seat.begin(Call::Pay(debts), self.answer_within);
        }
    }

    /// Polls the call under way, and takes note of how the session does.
    fn poll(&self, seat: &mut Seat, cx: &mut Context<'_>) -> Poll<Result<Answer>> {
        let answer = ready!(seat.poll(cx));
        match seat {
            Seat::Idle(session) => self.vitals.hear(session.id()),
            Seat::Lost(_) | Seat::Busy { .. } => self.vitals.lose(),
        }
        Poll::Ready(answer)
    }

    /// Works off what was left behind, unless somebody has the seat: whoever has it does so too,
    /// and nudges when leaving.
    pub(super) fn poll_left_behind(&self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            // Not a `Seated`, whose drop comes here.
            let Some(mut seat) = self.seat.try_lock() else {
                return Poll::Ready(());
            };
            ready!(self.settle(&mut seat, cx));
            drop(seat);
            // A debt that came while the seat was taken has relied on this look.
            if self.debts().is_empty() {
                return Poll::Ready(());
            }
        }
    }

    /// As far as that goes without waiting; what is left then is for the attendant.
    fn nudge(&self) {
        let mut cx = Context::from_waker(Waker::noop());
        if self.poll_left_behind(&mut cx).is_pending() {
            attendant::attend(Weak::clone(&self.owner));
        }
    }

    fn debts(&self) -> std::sync::MutexGuard<'_, Vec<Claim>> {
        // A list of claims is whole at any time.
        self.debts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Begins a call on the idle session. Its future owns the session until it ends.
    fn begin(&mut self, call: Call, answer_within: Duration) {
        let idle = mem::replace(self, Self::Lost(None));
        let Self::Idle(session) = idle else {
            *self = idle;
            return;
        };
        let future = Box::pin(perform(session, call.clone(), answer_within));
        *self = Self::Busy { call, future };
    }

    /// Polls the call under way.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Answer>> {
        // Out of its place while it is polled, so that a backend that panics loses the session
        // and is never polled again.
        let busy = mem::replace(self, Self::Lost(None));
        let Self::Busy { call, mut future } = busy else {
            *self = busy;
            return Poll::Ready(Err(self.lost()));
        };
        let Poll::Ready((session, answer)) = future.as_mut().poll(cx) else {
            *self = Self::Busy { call, future };
            return Poll::Pending;
        };
        *self = match (session, &answer) {
            // What the server does not know we hold, it may have given to others.
            (_, Ok(Answer::Done(done))) if call.unlocks() && done.contains(&false) => {
                Self::Lost(None)
            }
            (Some(session), Ok(_)) => Self::Idle(session),
            // Whatever may be the matter with it, nobody can rely on it.
            (_, Err(error)) if matches!(call, Call::Probe) => Self::Lost(Some(error.cause())),
            (Some(session), Err(_)) if !session.is_lost() => Self::Idle(session),
            (_, answer) => Self::Lost(answer.as_ref().err().map(Error::cause)),
        };
        Poll::Ready(answer)
    }

    fn lost(&self) -> Error {
        match self {
            Self::Lost(cause) => Error::lost(cause.clone()),
            _ => Error::lost(None),
        }
    }
}

impl Answer {
    /// Whether the answer to one request, or to a wait, is yes.
    fn is_yes(&self) -> bool {
        match self {
            Self::Done(done) => *done == [true],
            Self::Waited(waited) => *waited == Waited::Granted,
            Self::Holders(_) | Self::FencingToken(_) | Self::Alive => false,
        }
    }
}

impl Call {
    /// How long the session may take of its own accord.
    fn lasts(&self) -> Duration {
        match self {
            Self::Wait(_, turn) => turn.patience.unwrap_or(Turn::LONGEST).min(Turn::LONGEST),
            _ => Duration::ZERO,
        }
    }

    fn unlocks(&self) -> bool {
        matches!(self, Self::Unlock(_) | Self::Pay(_))
    }
}

/// Makes a call, and gives the session up if it does not answer in time.
async fn perform(
    mut session: Box<dyn LockSession>,
    call: Call,
    answer_within: Duration,
) -> Answered {
    let limit = answer_within.saturating_add(call.lasts());
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
        Call::Probe => return session.probe().await.map(|()| Answer::Alive),
        Call::TryLock(claim) => vec![Request::TryLock(claim)],
        Call::Unlock(claim) => vec![Request::Unlock(claim)],
        Call::Pay(claims) => claims.into_iter().map(Request::Unlock).collect(),
    };
    session.submit(&batch).await.map(Answer::Done)
}

fn no_answer() -> Error {
    Error::backend("the session answered another question than the one asked")
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

/// Has the seat, and pays on leaving what came to be owed meanwhile.
struct Seated<'a> {
    // In this order: the seat is free again before the debts are looked at, so that a debt is seen
    // either here or by whoever incurred it.
    seat: AsyncMutexGuard<'a, Seat>,
    _leaving: Leaving<'a>,
}

impl Deref for Seated<'_> {
    type Target = Seat;

    fn deref(&self) -> &Seat {
        &self.seat
    }
}

impl DerefMut for Seated<'_> {
    fn deref_mut(&mut self) -> &mut Seat {
        &mut self.seat
    }
}

struct Leaving<'a>(&'a Line);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.nudge();
    }
}

/// Counts among those who wait for the seat.
struct Queueing<'a>(&'a AtomicUsize);

impl<'a> Queueing<'a> {
    fn new(queue: &'a AtomicUsize) -> Self {
        queue.fetch_add(1, Ordering::Relaxed);
        Self(queue)
    }
}

impl Drop for Queueing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An unlock that has not been begun; dropping it leaves it to others.
struct Debt<'a> {
    line: &'a Line,
    claim: Claim,
}

impl Drop for Debt<'_> {
    fn drop(&mut self) {
        self.line.owe(self.claim);
    }
}
