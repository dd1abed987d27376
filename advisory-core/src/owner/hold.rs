use std::sync::Arc;

use super::{EntryId, Owner, Place};
use crate::{Result, spi::Claim};

/// One count of a held claim, which ends with its release or drop.
#[derive(Debug)]
pub(crate) struct Hold {
    /// `None` once released.
    owner: Option<Arc<Owner>>,
    claim: Claim,
    entry: EntryId,
    /// The lead in the local queue, for a hold that was acquired through it.
    place: Option<Place>,
}

impl Hold {
    pub(super) fn new(owner: Arc<Owner>, claim: Claim, entry: EntryId) -> Self {
        Self {
            owner: Some(owner),
            claim,
            entry,
            place: None,
        }
    }

    /// The hold of one who leads the local queue, and has to pass the lead on with its release.
    pub(crate) fn leading(mut self, place: Option<Place>) -> Self {
        if let Some(place) = &place {
            place.holds();
        }
        self.place = place;
        self
    }

    pub(crate) fn claim(&self) -> Claim {
        self.claim
    }

    /// The session that holds the lock.
    pub(crate) fn owner(&self) -> Option<&Arc<Owner>> {
        self.owner.as_ref()
    }

    pub(super) fn entry(&self) -> EntryId {
        self.entry
    }

    /// Whether the next in a local queue waits for the release.
    pub(super) fn leads(&self) -> bool {
        self.place.is_some()
    }

    /// Leaves the rest of the release to the caller.
    pub(super) fn take_owner(&mut self) -> Option<Arc<Owner>> {
        self.owner.take()
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.owner
            .as_ref()
            .is_some_and(|owner| owner.check().is_err())
    }

    /// Hands the lock to the next in the queue, or frees it, if this was its last count. Then sends
    /// the session back to its pool, if nothing else lives on it.
    pub(crate) async fn release(mut self) -> Result<()> {
        let Some(owner) = self.hand_over() else {
            return Ok(());
        };
        let place = self.place.take();
        if owner.forget(self.claim, self.entry) {
            owner.line.unlock([self.claim]).await?;
        } else {
            // Other counts go on. If the session is gone they are lost, and so was this one.
            owner.line.check()?;
        }
        Owner::leave_to_next(owner, place).await;
        Ok(())
    }

    /// Hands the lock over, or returns the session that still has it.
    fn hand_over(&mut self) -> Option<Arc<Owner>> {
        let owner = self.owner.take()?;
        if self.leads() && owner.may_hand_over(self.entry) {
            Owner::pass_on(owner, &mut self.place, Some(self.entry))
        } else {
            Some(owner)
        }
    }
}

/// Where nothing else lives on the session, dropping it is the surest way to free the lock. Where
/// something does, or somebody waits for it, the unlock is left to the session's line.
impl Drop for Hold {
    fn drop(&mut self) {
        let Some(owner) = self.hand_over() else {
            return;
        };
        let is_followed = self.place.as_ref().is_some_and(Place::is_followed);
        // Two that leave at once may both see the other; then both unlock, and the session goes.
        let stays = is_followed || Arc::strong_count(&owner) > 1;
        if owner.forget(self.claim, self.entry) && stays {
            owner.line.owe([self.claim]);
        }
        drop(Owner::pass_on(owner, &mut self.place, None));
    }
}

impl Owner {
    /// Takes an entry out of the table; whether the server has to be told.
    pub(super) fn forget(&self, claim: Claim, entry: EntryId) -> bool {
        let (last, holds) = {
            let mut table = self.table();
            (table.remove(entry), table.holds_anything())
        };
        self.line.hold(holds);
        if last {
            self.admission.ledger().strike(claim, &self.vitals);
        }
        self.tell();
        last
    }
}
