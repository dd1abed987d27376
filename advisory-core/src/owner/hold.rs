use std::{future::Future, sync::Arc};

use smallvec::SmallVec;

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

    /// Whether both live on one session.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        match (&self.owner, &other.owner) {
            (Some(owner), Some(of_other)) => Arc::ptr_eq(owner, of_other),
            _ => false,
        }
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
        // If other counts go on, and the session is gone, they are lost, and so was this one.
        owner.give_back([(self.claim, self.entry)]).await?;
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
        // First of all, so that whoever comes now, and is the last to leave, sees to it. If nobody does
        // the session is closed.
        owner.forget([(self.claim, self.entry)], |freed| {
            owner.line.note_debts(freed.iter().copied());
        });
        let is_followed = self.place.as_ref().is_some_and(Place::is_followed);
        if is_followed || Arc::strong_count(&owner) > 1 {
            owner.line.nudge();
        }
        drop(Owner::pass_on(owner, &mut self.place, None));
    }
}

impl Owner {
    /// Takes entries out of the table, and unlocks what no other entry stands for. That has its place
    /// in the line before the future is polled, and happens also if it is dropped.
    pub(super) fn give_back(
        &self,
        entries: impl IntoIterator<Item = (Claim, EntryId)>,
    ) -> impl Future<Output = Result<()>> {
        self.forget(entries, |freed| self.line.unlock(freed))
    }

    /// Takes entries out of the table. What no other entry stands for is to be freed before anybody
    /// else of this owner can ask for it, for a session may enter again what it still holds.
    fn forget<T>(
        &self,
        entries: impl IntoIterator<Item = (Claim, EntryId)>,
        free: impl FnOnce(&[Claim]) -> T,
    ) -> T {
        let mut table = self.table();
        let entries = entries.into_iter();
        let freed: SmallVec<[Claim; 1]> = entries
            .filter_map(|(claim, entry)| table.remove(entry).then_some(claim))
            .collect();
        let outcome = free(&freed);
        self.line.hold(table.holds_anything());
        for claim in freed {
            self.admission.ledger().strike(claim, &self.vitals);
        }
        drop(table);
        self.tell();
        outcome
    }
}
