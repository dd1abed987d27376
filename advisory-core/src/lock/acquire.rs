use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
};

use super::{Lock, OnLoss};
use crate::{
    Error, LockGuard, LockMode, Result, Section,
    context::Frame,
    manager::Admission,
    owner::{Baton, EntryId, Hold, Owner, Place, Queues},
    patience::Patience,
};

impl Lock {
    /// Acquires for a guard, which belongs to the frame around it if there is one.
    pub(super) async fn acquire(&self, patience: Patience) -> Result<Option<LockGuard>> {
        let hold = match Frame::current(self.shared.id) {
            Some((frame, owner)) => owner.acquire(self.claim(), &frame, patience).await,
            None => self
                .acquire_alone(patience)
                .await
                .map(|held| held.map(|(hold, _)| hold)),
        };
        self.guarded(hold)
    }

    /// Acquires for a section, which opens a frame that the lock belongs to.
    pub(super) async fn enter(&self, patience: Patience) -> Result<Option<(Hold, Arc<Frame>)>> {
        let entered = match Frame::current(self.shared.id) {
            Some((parent, owner)) => {
                let frame = Frame::open(self.shared.id, Arc::downgrade(&owner), Some(parent));
                let hold = owner.acquire(self.claim(), &frame, patience).await;
                hold.map(|hold| hold.map(|hold| (hold, frame)))
            }
            None => self.acquire_alone(patience).await,
        };
        entered.map_err(|error| error.about(&self.label))
    }

    /// As [`enter`](Self::enter), for a caller who is willing to wait.
    pub(super) async fn enter_surely(&self, patience: Patience) -> Result<(Hold, Arc<Frame>)> {
        let entered = self.enter(patience).await?;
        entered.ok_or_else(Error::no_miss)
    }

    /// Acquires as an owner of its own, in a frame of its own.
    ///
    /// Those of one manager who want the lock exclusively do that one after the other. They hold
    /// nothing, so nobody waits for them, and no deadlock can hide in their queue.
    async fn acquire_alone(&self, patience: Patience) -> Result<Option<(Hold, Arc<Frame>)>> {
        let admission = self.shared.admit()?;
        if patience.is_none() && self.shared.ledger.conflicts(self.claim(), None) {
            return Ok(None);
        }
        if self.mode == LockMode::Shared || !patience.waits() {
            let attempt = self.begin(admission, None, patience).await?;
            return attempt.end(None).await;
        }
        let place = Queues::join(&self.shared.queues, self.label.key);
        let baton = self.shared.turn(&place, patience).await?;
        let attempt = {
            let mut attempt = pin!(self.go_on(admission, &place, baton, patience));
            poll_fn(|cx| {
                place.leads(cx.waker());
                attempt.as_mut().poll(cx)
            })
            .await?
        };
        attempt.end(Some(place)).await
    }

    /// Acquires with what the one before in the queue has passed on.
    async fn go_on(
        &self,
        admission: Admission,
        place: &Place,
        baton: Option<Baton>,
        patience: Patience,
    ) -> Result<Attempt> {
        if let Some((owner, lock)) = baton.and_then(Baton::unpack) {
            let attempt = self.attempt(owner, lock, Some(place), patience).await;
            // A session that was lost on the way is no loss to one who held nothing there.
            if attempt.outcome.is_ok() || attempt.owner.check().is_ok() {
                return Ok(attempt);
            }
        }
        self.begin(admission, Some(place), patience).await
    }

    /// Acquires on a session of its own.
    async fn begin(
        &self,
        admission: Admission,
        place: Option<&Place>,
        patience: Patience,
    ) -> Result<Attempt> {
        let owner = Owner::open(admission, patience).await?;
        Ok(self.attempt(owner, None, place, patience).await)
    }

    async fn attempt(
        &self,
        owner: Arc<Owner>,
        lock: Option<EntryId>,
        place: Option<&Place>,
        patience: Patience,
    ) -> Attempt {
        if let Some(place) = place {
            place.testify(Arc::downgrade(&owner));
        }
        let frame = Frame::open(self.shared.id, Arc::downgrade(&owner), None);
        let outcome = match lock {
            Some(lock) => Ok(Some(owner.take_over(self.claim(), lock, &frame))),
            None => owner.acquire(self.claim(), &frame, patience).await,
        };
        Attempt {
            owner,
            frame,
            outcome,
        }
    }

    /// Runs a section with the lock held, in its frame.
    pub(super) async fn run<T>(
        &self,
        hold: Hold,
        frame: Arc<Frame>,
        section: impl AsyncFnOnce(&LockGuard) -> T,
    ) -> Result<T> {
        let guard = self.guard(hold);
        // After the guard, so that it is gone when a drop of this future comes to the guard, whose
        // own drop looks for others on the session.
        let watched = match self.on_loss {
            OnLoss::Stop => guard.owner().map(Arc::clone),
            OnLoss::Continue => None,
        };
        // The call itself, too, is made inside the frame: a plain closure may do its work there.
        let section = frame.run(async { section(&guard).await });
        let value = match &watched {
            Some(owner) => owner
                .while_alive(section)
                .await
                .map_err(|lost| lost.in_section(Section::Stopped).about(&self.label))?,
            None => section.await,
        };
        drop(watched);
        let released = guard.release().await;
        released.map_err(|error| error.in_section(Section::Completed))?;
        Ok(value)
    }
}

/// A top-level acquisition that has ended, well or not.
struct Attempt {
    owner: Arc<Owner>,
    frame: Arc<Frame>,
    outcome: Result<Option<Hold>>,
}

impl Attempt {
    /// Sends the session on its way, if it has not got the lock.
    async fn end(self, place: Option<Place>) -> Result<Option<(Hold, Arc<Frame>)>> {
        match self.outcome {
            Ok(Some(hold)) => Ok(Some((hold.leading(place), self.frame))),
            Ok(None) => {
                Owner::leave_to_next(self.owner, place).await;
                Ok(None)
            }
            Err(error) => {
                // A statement that has not been answered leaves nothing to go back to the pool.
                if !error.is_unanswered() {
                    Owner::leave_to_next(self.owner, place).await;
                }
                Err(error)
            }
        }
    }
}
