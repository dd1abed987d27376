use std::sync::Arc;

use super::{Lock, OnLoss};
use crate::{
    Error, LockGuard, Result, Section,
    context::Frame,
    owner::{Hold, Owner},
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
        let hold = hold.map_err(|error| error.about(&self.label))?;
        Ok(hold.map(|hold| LockGuard::new(hold, self.label.clone())))
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

    /// Acquires on a session of its own, in a frame of its own.
    async fn acquire_alone(&self, patience: Patience) -> Result<Option<(Hold, Arc<Frame>)>> {
        let admission = self.shared.admit()?;
        if patience.is_none() && self.shared.ledger.conflicts(self.claim(), None) {
            return Ok(None);
        }
        let owner = Owner::open(admission, patience).await?;
        let frame = Frame::open(self.shared.id, Arc::downgrade(&owner), None);
        match owner.acquire(self.claim(), &frame, patience).await {
            Ok(Some(hold)) => Ok(Some((hold, frame))),
            Ok(None) => {
                Owner::leave(owner).await;
                Ok(None)
            }
            Err(error) => {
                // A statement that has not been answered leaves nothing to go back to the pool.
                if !error.is_unanswered() {
                    Owner::leave(owner).await;
                }
                Err(error)
            }
        }
    }

    /// Runs a section with the lock held, in its frame.
    pub(super) async fn run<T>(
        &self,
        hold: Hold,
        frame: Arc<Frame>,
        section: impl AsyncFnOnce(&LockGuard) -> T,
    ) -> Result<T> {
        let guard = LockGuard::new(hold, self.label.clone());
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
