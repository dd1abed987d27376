//! The lock table: PostgreSQL's rules as a state machine, without time, tasks or wakers.

mod deadlock;
mod entry;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
};

use advisory_core::{
    LockKey, LockMode,
    spi::{Claim, SessionId},
};

use self::entry::{Entry, Waiter};
pub(crate) use self::{deadlock::Cycle, entry::Place};

/// Who holds what and who waits for what, for all sessions of one backend.
///
/// A session waits for one claim at a time, and does nothing else meanwhile.
#[derive(Debug, Default)]
pub(crate) struct LockSpace {
    entries: BTreeMap<LockKey, Entry>,
    /// The keys that each session holds, in whatever mode.
    held: HashMap<SessionId, BTreeSet<LockKey>>,
    /// What each waiting session waits for.
    waiting: HashMap<SessionId, Claim>,
    /// Sessions that had been waiting and were granted their claim; see
    /// [`take_granted`](Self::take_granted).
    granted: Vec<SessionId>,
    next_place: u64,
}

/// What becomes of a request that may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Granted,
    Queued,
}

/// What a request had when it gave up waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) place: Place,
    /// Whether shared holders only stood in its way.
    pub(crate) behind_readers: bool,
}

impl LockSpace {
    /// Takes a claim, once more if the session has it already, unless it would have to wait.
    pub(crate) fn try_lock(&mut self, session: SessionId, claim: Claim) -> bool {
        let entry = self.entries.entry(claim.key).or_default();
        let granted = entry.try_lock(session, claim.mode);
        if granted {
            self.held.entry(session).or_default().insert(claim.key);
        }
        granted
    }

    /// Gives one count of a claim back; whether the session had it.
    pub(crate) fn unlock(&mut self, session: SessionId, claim: Claim) -> bool {
        let Some(entry) = self.entries.get_mut(&claim.key) else {
            return false;
        };
        let unlocked = entry.unlock(session, claim.mode);
        if unlocked {
            self.settle_hold(session, claim.key);
            self.settle(claim.key);
        }
        unlocked
    }

    /// Takes a claim, or queues for it: at the place it had before, if it had one.
    ///
    /// A cycle of waits is seen here, since only a new wait can close one. If it takes no more than
    /// to let a reader in out of turn, that is done; otherwise the new wait fails.
    pub(crate) fn wait(
        &mut self,
        session: SessionId,
        claim: Claim,
        place: Option<Place>,
    ) -> Result<Wait, Cycle> {
        let waiter = Waiter {
            session,
            mode: claim.mode,
            place: place.unwrap_or_else(|| self.next_place()),
        };
        self.entries.entry(claim.key).or_default().enqueue(waiter);
        self.waiting.insert(session, claim);
        self.settle(claim.key);
        if let Some(cycle) = deadlock::of_holds(self, session) {
            self.leave(session);
            return Err(cycle);
        }
        while let Some(reader) = deadlock::of_order(self, session) {
            self.advance(reader);
        }
        Ok(if self.is_waiting(session) {
            Wait::Queued
        } else {
            Wait::Granted
        })
    }

    /// Takes a session's request out of its queue; `None` if it is not in one, so also if it has
    /// been granted.
    pub(crate) fn leave(&mut self, session: SessionId) -> Option<Left> {
        let Claim { key, mode } = self.waiting.remove(&session)?;
        let entry = self.entries.get_mut(&key)?;
        let behind_readers = {
            let mut ahead = entry.ahead_of(session);
            let mut holders = entry.held_against(session, mode);
            !ahead.any(|waiter| waiter.mode.conflicts_with(mode))
                && holders.all(|(_, held)| held == LockMode::Shared)
        };
        let waiter = entry.dequeue(session)?;
        self.settle(key);
        Some(Left {
            place: waiter.place,
            behind_readers,
        })
    }

    /// Frees whatever the session holds, and ends its wait.
    pub(crate) fn end(&mut self, session: SessionId) {
        self.leave(session);
        for key in self.held.remove(&session).unwrap_or_default() {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.free(session);
            }
            self.settle(key);
        }
    }

    pub(crate) fn is_waiting(&self, session: SessionId) -> bool {
        self.waiting.contains_key(&session)
    }

    /// Sessions whose waits ended with a grant since the last call.
    pub(crate) fn take_granted(&mut self) -> Vec<SessionId> {
        mem::take(&mut self.granted)
    }

    /// Everything that is held, by key.
    pub(crate) fn held(&self) -> impl Iterator<Item = (SessionId, Claim)> {
        self.entries.iter().flat_map(|(&key, entry)| {
            let claims = entry.holds();
            claims.map(move |(session, mode)| (session, Claim { key, mode }))
        })
    }

    /// Who holds the key, exclusive holders first.
    pub(crate) fn holders(&self, key: LockKey) -> impl Iterator<Item = (SessionId, LockMode)> {
        let entry = self.entries.get(&key);
        entry.into_iter().flat_map(Entry::holds)
    }

    /// Who waits for the key, front first.
    pub(crate) fn waiters(&self, key: LockKey) -> impl Iterator<Item = (SessionId, LockMode)> {
        let entry = self.entries.get(&key);
        let queue = entry.into_iter().flat_map(Entry::queue);
        queue.map(|waiter| (waiter.session, waiter.mode))
    }

    fn next_place(&mut self) -> Place {
        self.next_place += 1;
        Place(self.next_place)
    }

    /// Lets a session's request in front of its queue.
    fn advance(&mut self, session: SessionId) {
        let Some(Claim { key, .. }) = self.waiting.get(&session).copied() else {
            return;
        };
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.advance(session);
        }
        self.settle(key);
    }

    /// After a change to a key: grants what has become free, and forgets an entry that is empty.
    fn settle(&mut self, key: LockKey) {
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        let granted = entry.grant_waiters();
        if entry.is_empty() {
            self.entries.remove(&key);
        }
        for session in &granted {
            self.waiting.remove(session);
            self.held.entry(*session).or_default().insert(key);
        }
        self.granted.extend(granted);
    }

    /// After an unlock: forgets that the session holds the key, if it does not any more.
    fn settle_hold(&mut self, session: SessionId, key: LockKey) {
        let held = |entry: &Entry| entry.is_held_by(session);
        if self.entries.get(&key).is_some_and(held) {
            return;
        }
        if let Some(keys) = self.held.get_mut(&session) {
            keys.remove(&key);
            if keys.is_empty() {
                self.held.remove(&session);
            }
        }
    }
}
