//! An owner of locks: one session, what is held on it, and by whom.

mod hold;
mod many;
mod succession;
mod table;
mod watch;

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::{Duration, Instant},
};

use futures::future::BoxFuture;

use self::table::{Table, Verdict};
pub(crate) use self::{
    hold::Hold,
    succession::{Baton, Place, Queues},
    table::EntryId,
};
use crate::{
    Error, FencingToken, Holder, LockKey, Result, Sessions, Stage,
    context::Frame,
    line::{Line, LineOwner, Vitals, is_ours},
    manager::Admission,
    news::News,
    patience::Patience,
    spi::{Claim, Turn, Waited},
};

/// A session and the table of what it holds.
///
/// Everything that lives on the session keeps an `Arc` of its owner: holds, and acquisitions under
/// way. Whoever leaves last, by [`leave`](Self::leave), sends the session back to its pool; if the
/// last `Arc` is dropped in any other way, the session is dropped with it, and the server frees
/// whatever it had.
#[derive(Debug)]
pub(crate) struct Owner {
    line: Line,
    table: Mutex<Table>,
    /// Notified whenever the table changes. There is none before somebody waits for that.
    changed: OnceLock<News>,
    vitals: Arc<Vitals>,
    /// After the line, so that a manager that waits to close sees the session gone.
    admission: Admission,
}

impl Owner {
    /// Opens a session for a top-level acquisition.
    pub(crate) async fn open(admission: Admission, patience: Patience) -> Result<Arc<Self>> {
        let session = patience.bound_checkout(admission.backend().open()).await?;
        let vitals = Arc::new(Vitals::new());
        Ok(Arc::new_cyclic(|owner| Self {
            line: Line::new(
                session,
                Weak::<Self>::clone(owner),
                Arc::clone(&vitals),
                admission.options(),
            ),
            table: Mutex::default(),
            changed: OnceLock::new(),
            vitals,
            admission,
        }))
    }

    /// Gives the session back to its pool if nobody else lives on it.
    pub(crate) async fn leave(owner: Arc<Self>) {
        if let Some(owner) = Arc::into_inner(owner) {
            // A lock that was being handed over, to one who has gone.
            let mut abandoned = owner.table().held();
            abandoned.sort_unstable();
            abandoned.dedup();
            owner.line.note_debts(abandoned);
            owner.line.recycle().await;
        }
    }

    /// Takes a claim for a frame; `None` if there was no patience, and it is held.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        claim: Claim,
        frame: &Arc<Frame>,
        patience: Patience,
    ) -> Result<Option<Hold>> {
        let mut changed = None;
        loop {
            let verdict = self.table().request(claim, frame);
            match (verdict, changed.take()) {
                (Verdict::Held(entry), _) => {
                    let hold = self.hold(claim, entry);
                    // What the session held went with it; that must not be entered anew.
                    self.line.check()?;
                    return Ok(Some(hold));
                }
                (Verdict::Ask(entry), _) => {
                    let request = self.pending(claim, entry);
                    let granted = patience.bound_answer(self.ask(claim, patience)).await;
                    let granted = granted.map_err(|error| self.or_lost(error))?;
                    return Ok(granted.then(|| self.hold(claim, request.granted())));
                }
                (Verdict::Blocked, _) if patience.is_none() => return Ok(None),
                // Listening begins before another look at the table, so that no change is missed.
                (_, None) => changed = Some(self.changed.get_or_init(News::default).listen()),
                // Somebody else's question, whose answer comes in any case.
                (Verdict::Undecided, Some(changed)) if patience.is_none() => changed.await,
                (Verdict::Undecided, Some(changed)) => {
                    patience.bound_local(changed, Stage::Lock).await?;
                }
                (Verdict::Blocked, Some(changed)) => {
                    let _waiting = LocalWait::begin(self, claim, frame)?;
                    patience.bound_local(changed, Stage::Lock).await?;
                }
            }
        }
    }

    /// Asks the server for a claim that nothing in the table speaks against.
    async fn ask(&self, claim: Claim, patience: Patience) -> Result<bool> {
        if patience.is_none() && self.is_held_elsewhere(claim) {
            return Ok(false);
        }
        if self.line.try_lock(claim).await? {
            return Ok(true);
        }
        if patience.is_none() {
            return Ok(false);
        }
        let _waiting = ServerWait { owner: self };
        let started = Instant::now();
        let mut turn = Turn::first(None);
        let mut deadlocked = false;
        loop {
            turn.patience = patience.remaining();
            turn.patience_in_a_cycle = turn.patience;
            if turn.patience == Some(Duration::ZERO) {
                return Err(self.timed_out(claim, patience).await);
            }
            turn.waited = started.elapsed();
            turn.holding = self.table().holds_anything();
            if turn.holding {
                // Somebody may have to be told in time that what it holds is lost.
                let bound = self.admission.options().silent_within / 2;
                turn.patience = Some(turn.patience.unwrap_or(bound).min(bound));
            }
            turn.answer_within = Some(self.line.answer_within());
            turn.wanted = self.line.is_wanted();
            match self.line.wait(claim, turn).await {
                Ok(Waited::Granted) => return Ok(true),
                Ok(Waited::TurnOver { behind_readers }) => {
                    turn.behind_readers = if behind_readers {
                        turn.behind_readers.saturating_add(1)
                    } else {
                        0
                    };
                }
                // A release that waits for the session may be all that the cycle was made of. It
                // comes before the next turn.
                Err(Error::Deadlock { .. }) if !deadlocked && self.line.is_wanted() => {
                    deadlocked = true;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// What an error means to an owner: if its session is gone, so is all that it held, and that
    /// counts for more than what became of the request.
    fn or_lost(&self, error: Error) -> Error {
        match self.check() {
            Err(lost) if self.table().holds_anything() => lost,
            _ => error,
        }
    }

    /// The error of a wait that has lasted too long, with the names of those who hold the lock.
    async fn timed_out(&self, claim: Claim, patience: Patience) -> Error {
        // Not to know them is no reason for another error.
        let holders = self.holders(claim.key).await.unwrap_or_default();
        patience.timed_out(Stage::Lock).held_by(holders)
    }

    /// Who holds a key, as far as the session may see.
    pub(crate) async fn holders(&self, key: LockKey) -> Result<Vec<Holder>> {
        let mut holders = self.line.holders(key).await?;
        for holder in &mut holders {
            holder.this_process = is_ours(holder.session);
        }
        Ok(holders)
    }

    pub(crate) fn vitals(&self) -> &Vitals {
        &self.vitals
    }

    /// Fails if the session is known to be gone. Nothing is asked.
    pub(crate) fn check(&self) -> Result<()> {
        self.line.check()
    }

    /// The token of a claim that this owner holds: the same for all who share its one count on the
    /// server, another one after that.
    pub(crate) async fn fencing_token(&self, claim: Claim) -> Result<FencingToken> {
        if let Some(token) = self.table().token(claim) {
            return Ok(token);
        }
        let token = self.line.fencing_token().await;
        let token = token.map_err(|error| self.or_lost(error))?;
        // Of two that asked at once the first one counts.
        Ok(self.table().keep_token(claim, token))
    }

    /// Whether another session of the same manager is known to hold what conflicts.
    fn is_held_elsewhere(&self, claim: Claim) -> bool {
        self.admission.ledger().conflicts(claim, Some(&self.vitals))
    }

    fn hold(self: &Arc<Self>, claim: Claim, entry: EntryId) -> Hold {
        Hold::new(Arc::clone(self), claim, entry)
    }

    fn pending(&self, claim: Claim, entry: EntryId) -> Pending<'_> {
        Pending {
            owner: self,
            claim,
            entry,
        }
    }

    /// Tells those who wait for a change of the table that there was one.
    fn tell(&self) {
        if let Some(changed) = self.changed.get() {
            changed.tell();
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Each of the table's methods leaves it whole, and none calls foreign code.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LineOwner for Owner {
    fn line(&self) -> &Line {
        &self.line
    }

    fn leave(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(Self::leave(self))
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        for claim in self.table().held() {
            self.admission.ledger().strike(claim, &self.vitals);
        }
    }
}

/// A request that has been put to the server. Unless it is granted, the drop takes it out of the
/// table; what the server may still answer is then the line's to undo.
struct Pending<'a> {
    owner: &'a Owner,
    claim: Claim,
    entry: EntryId,
}

impl Pending<'_> {
    fn granted(self) -> EntryId {
        let ledger = self.owner.admission.ledger();
        ledger.enter(self.claim, &self.owner.vitals);
        self.owner.table().grant(self.entry);
        self.owner.vitals.grant();
        self.owner.line.hold(true);
        self.owner.tell();
        let entry = self.entry;
        std::mem::forget(self);
        entry
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.owner.table().remove(self.entry);
        self.owner.tell();
    }
}

/// A wait for others by turns, in which a session that is shared keeps a place.
struct ServerWait<'a> {
    owner: &'a Owner,
}

impl Drop for ServerWait<'_> {
    fn drop(&mut self) {
        if self.owner.admission.options().sessions == Sessions::Shared {
            self.owner.line.end_wait();
        }
    }
}

/// A wait for a sibling frame of the same owner, which the server cannot see.
struct LocalWait<'a> {
    owner: &'a Owner,
    frame: &'a Arc<Frame>,
}

impl<'a> LocalWait<'a> {
    fn begin(owner: &'a Owner, claim: Claim, frame: &'a Arc<Frame>) -> Result<Self> {
        if owner.table().begin_wait(claim, frame) {
            Ok(Self { owner, frame })
        } else {
            Err(Error::deadlock(Some(format!(
                "sections inside one owner wait for each other, one of them for {}",
                claim.key
            ))))
        }
    }
}

impl Drop for LocalWait<'_> {
    fn drop(&mut self) {
        self.owner.table().end_wait(self.frame);
    }
}
