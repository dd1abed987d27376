//! How a session, or a lock together with it, passes from one owner of this process to the next.

use std::sync::{Arc, Weak};

use super::{EntryId, Hold, Owner};
use crate::{LockKey, context::Frame, queue, spi::Claim};

/// The local queues of a manager.
pub(crate) type Queues = queue::Queues<LockKey, Baton, Weak<Owner>>;

/// A place in one of them.
pub(crate) type Place = queue::Place<LockKey, Baton, Weak<Owner>>;

/// What is passed on in a queue: a session, on which nobody else lives.
#[derive(Debug)]
pub(crate) struct Baton {
    owner: Arc<Owner>,
    /// What stands for the lock in the owner's table; `None` if the session holds nothing.
    lock: Option<EntryId>,
}

impl Baton {
    /// The session, unless it has been lost on the way, and the lock, now the frame's.
    pub(crate) fn unpack(self) -> Option<(Arc<Owner>, Option<EntryId>)> {
        self.owner.check().ok()?;
        Some((self.owner, self.lock))
    }
}

impl Owner {
    /// Makes a lock that was handed over with the session the frame's.
    pub(crate) fn take_over(self: &Arc<Self>, claim: Claim, lock: EntryId, frame: &Frame) -> Hold {
        self.table().take_over(lock, frame);
        self.hold(claim, lock)
    }

    /// Leaves the session to the next in the queue, or as [`leave`](Self::leave) does.
    pub(crate) async fn leave_to_next(owner: Arc<Self>, mut place: Option<Place>) {
        if let Some(owner) = Self::pass_on(owner, &mut place, None) {
            Self::leave(owner).await;
        }
    }

    /// Passes the session on, and a lock with it. It comes back if others live on it, or nobody is
    /// there to take it; then the place is kept, and with it the lead.
    pub(super) fn pass_on(
        owner: Arc<Self>,
        place: &mut Option<Place>,
        lock: Option<EntryId>,
    ) -> Option<Arc<Self>> {
        let fit = Arc::strong_count(&owner) == 1
            && (owner.line.is_at_rest() || lock.is_none() && owner.line.is_only_unlocking());
        let Some(place) = place.take_if(|place| fit && place.is_followed()) else {
            return Some(owner);
        };
        owner.vitals.change_hands();
        place.pass(Baton { owner, lock }).map(|baton| baton.owner)
    }

    /// Whether a lock may be handed over: it is all that the session holds, and was granted so
    /// recently that nobody elsewhere has waited for it for long.
    pub(super) fn may_hand_over(&self, lock: EntryId) -> bool {
        self.vitals.granted_for() < self.admission.options().hand_over_within
            && self.table().is_all(lock)
    }
}
