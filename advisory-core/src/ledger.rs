use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{Holder, LockKey, LockMode, owner::Vitals, spi::Claim};

/// What the sessions of one manager hold, so that a look into memory can answer what would
/// otherwise cost a connection.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    holds: Mutex<Holds>,
}

/// In which modes and by which sessions each key is held.
type Holds = HashMap<LockKey, Vec<(LockMode, Arc<Vitals>)>>;

impl Ledger {
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
                    && holder.is_trusted()
            })
        })
    }

    /// All that is held.
    pub(crate) fn holders(&self) -> Vec<Holder> {
        let holds = self.holds();
        let holders = holds.iter().flat_map(|(key, of_key)| {
            of_key
                .iter()
                .filter_map(|(mode, holder)| Some(Holder::new(holder.id()?, *key, *mode)))
        });
        holders.collect()
    }

    fn holds(&self) -> MutexGuard<'_, Holds> {
        // Entries are added and removed whole.
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
