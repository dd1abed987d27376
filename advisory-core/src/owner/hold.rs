use std::sync::Arc;

use super::{EntryId, Owner};
use crate::{Result, spi::Claim};

/// One count of a held claim, which ends with its release or drop.
#[derive(Debug)]
pub(crate) struct Hold {
    /// `None` once released.
    owner: Option<Arc<Owner>>,
    claim: Claim,
    entry: EntryId,
}

impl Hold {
    pub(super) fn new(owner: Arc<Owner>, claim: Claim, entry: EntryId) -> Self {
        Self {
            owner: Some(owner),
            claim,
            entry,
        }
    }

    pub(crate) fn claim(&self) -> Claim {
        self.claim
    }

    /// The session that holds the lock.
    pub(crate) fn owner(&self) -> Option<&Arc<Owner>> {
        self.owner.as_ref()
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.owner
            .as_ref()
            .is_some_and(|owner| owner.check().is_err())
    }

    /// Frees the lock, if this was its last count, and sends the session back to its pool, if
    /// nothing else lives on it.
    pub(crate) async fn release(mut self) -> Result<()> {
        let Some(owner) = self.owner.take() else {
            return Ok(());
        };
        if owner.forget(self.claim, self.entry) {
            owner.line.unlock(self.claim).await?;
        } else {
            // Other counts go on. If the session is gone they are lost, and so was this one.
            owner.line.check()?;
        }
        Owner::leave(owner).await;
        Ok(())
    }
}

/// Where nothing else lives on the session, dropping it is the surest way to free the lock. Where
/// something does, the unlock is left to the session's line.
impl Drop for Hold {
    fn drop(&mut self) {
        let Some(owner) = self.owner.take() else {
            return;
        };
        // Two that leave at once may both see the other; then both unlock, and the session goes.
        if owner.forget(self.claim, self.entry) && Arc::strong_count(&owner) > 1 {
            owner.line.owe(self.claim);
        }
    }
}

impl Owner {
    /// Takes an entry out of the table; whether the server has to be told.
    fn forget(&self, claim: Claim, entry: EntryId) -> bool {
        let last = self.table().remove(entry);
        if last {
            self.admission.ledger().strike(claim, &self.vitals);
        }
        self.changed.notify(usize::MAX);
        last
    }
}
