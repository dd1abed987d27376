use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use foldhash::HashMap;
use smallvec::SmallVec;

use crate::{Holder, LockKey, LockMode, line::Vitals, spi::Claim};

/// What the sessions of one manager hold, so that a look into memory can answer what would
/// otherwise cost a connection.
#[derive(Debug)]
pub(crate) struct Ledger {
    holds: Mutex<Holds>,
    /// How old a holder's last sign of life may be for its holds to be relied on, instead of asking
    /// the server.
    trusted_for: Duration,
}

/// In which modes and by which sessions each key is held.
type Holds = HashMap<LockKey, SmallVec<[(LockMode, Arc<Vitals>); 1]>>;

impl Ledger {
    pub(crate) fn new(trusted_for: Duration) -> Self {
        Self {
            holds: Mutex::default(),
            trusted_for,
        }
    }

    /// The server has granted the claim.
    pub(crate) fn enter(&self, claim: Claim, session: &Arc<Vitals>) {
        let hold = (claim.mode, Arc::clone(session));
        self.holds().entry(claim.key).or_default().push(hold);
    }

    /// The claim is being given back, or its session has ended.
    pub(crate) fn strike(&self, claim: Claim, session: &Arc<Vitals>) {
        let mut holds = self.holds();
        let Some(of_key) = holds.get_mut(&claim.key) else {
            return;
        };
        of_key.retain(|(mode, holder)| *mode != claim.mode || !Arc::ptr_eq(holder, session));
        if of_key.is_empty() {
            holds.remove(&claim.key);
        }
    }

    /// Whether a session other than `asking` holds the key in a mode that conflicts, and is known
    /// to be alive.
    pub(crate) fn conflicts(&self, claim: Claim, asking: Option<&Arc<Vitals>>) -> bool {
        self.holds().get(&claim.key).is_some_and(|of_key| {
            of_key.iter().any(|(mode, holder)| {
                mode.conflicts_with(claim.mode)
                    && asking.is_none_or(|asking| !Arc::ptr_eq(holder, asking))
                    && holder.is_trusted(self.trusted_for)
            })
        })
    }

    /// All that is held.
    pub(crate) fn holders(&self) -> Vec<Holder> {
        let holds = self.holds();
        let holders = holds.iter().flat_map(|(key, of_key)| known(*key, of_key));
        holders.collect()
    }

    /// Those of this manager who hold a key.
    pub(crate) fn holders_of(&self, key: LockKey) -> Vec<Holder> {
        let holds = self.holds();
        let of_key = holds.get(&key).map(SmallVec::as_slice);
        known(key, of_key.unwrap_or_default()).collect()
    }

    fn holds(&self) -> MutexGuard<'_, Holds> {
        // Entries are added and removed whole.
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn known(key: LockKey, of_key: &[(LockMode, Arc<Vitals>)]) -> impl Iterator<Item = Holder> {
    let holder = move |(mode, holder): &(LockMode, Arc<Vitals>)| {
        let mut holder = Holder::new(holder.id()?, key, *mode);
        holder.this_process = true;
        Some(holder)
    };
    of_key.iter().filter_map(holder)
}
