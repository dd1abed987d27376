use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use foldhash::HashMap;
use smallvec::SmallVec;

use crate::{
    LockKey, LockMode,
    news::{Listening, News},
    spi::Claim,
};

/// What the branches hold and are after. It keeps those apart who share a session.
#[derive(Debug, Default)]
pub(super) struct Gate {
    entries: Mutex<HashMap<LockKey, SmallVec<[Entry; 1]>>>,
    /// Notified whenever somebody leaves.
    left: News,
}

/// Names a branch.
pub(super) type BranchId = u64;

#[derive(Debug)]
struct Entry {
    branch: BranchId,
    mode: LockMode,
    /// When the branch came in.
    since: Instant,
}

/// What the gate says to a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entrance {
    /// It may ask on the trunk.
    Open,
    /// It may ask, but not on the trunk: that would be granted the claim whoever else has queued up
    /// for it.
    Aside,
    /// Another branch is in the way.
    Shut,
}

impl Gate {
    /// Lets a branch in that wants a claim, unless another one is in the way. Readers may join
    /// readers on the trunk for so long after the first has come.
    pub(super) fn enter(&self, claim: Claim, branch: BranchId, join_within: Duration) -> Entrance {
        let mut entries = self.entries();
        let of_key = entries.entry(claim.key).or_default();
        let mut others = of_key.iter().filter(|entry| entry.branch != branch);
        if others.any(|entry| entry.mode.conflicts_with(claim.mode)) {
            return Entrance::Shut;
        }
        let first = of_key.iter().map(|entry| entry.since).min();
        let is_joined = of_key.iter().any(|entry| entry.branch == branch);
        of_key.push(Entry {
            branch,
            mode: claim.mode,
            since: Instant::now(),
        });
        match first {
            Some(first) if !is_joined && first.elapsed() >= join_within => Entrance::Aside,
            _ => Entrance::Open,
        }
    }

    /// The branch has given the claim back, or has not got it.
    pub(super) fn leave(&self, claim: Claim, branch: BranchId) {
        let mut entries = self.entries();
        let Some(of_key) = entries.get_mut(&claim.key) else {
            return;
        };
        let mut of_branch = of_key.iter();
        if let Some(at) =
            of_branch.position(|entry| entry.branch == branch && entry.mode == claim.mode)
        {
            of_key.swap_remove(at);
        }
        if of_key.is_empty() {
            entries.remove(&claim.key);
        }
        drop(entries);
        self.left.tell();
    }

    /// Ends when somebody leaves.
    pub(super) fn listen(&self) -> Listening<'_> {
        self.left.listen()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<LockKey, SmallVec<[Entry; 1]>>> {
        // Entries are added and removed whole.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Claim = Claim {
        key: LockKey::BigInt(1),
        mode: LockMode::Shared,
    };
    const WRITE: Claim = Claim {
        key: LockKey::BigInt(1),
        mode: LockMode::Exclusive,
    };
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    #[test]
    fn one_branch_at_a_time_writes() {
        let gate = Gate::default();
        assert_eq!(gate.enter(WRITE, 1, DAY), Entrance::Open);
        assert_eq!(gate.enter(WRITE, 2, DAY), Entrance::Shut);
        assert_eq!(gate.enter(READ, 2, DAY), Entrance::Shut);
        gate.leave(WRITE, 1);
        assert_eq!(gate.enter(WRITE, 2, DAY), Entrance::Open);
    }

    #[test]
    fn readers_join_early_and_stand_aside_late() {
        let gate = Gate::default();
        assert_eq!(gate.enter(READ, 1, DAY), Entrance::Open);
        assert_eq!(gate.enter(READ, 2, DAY), Entrance::Open);
        assert_eq!(gate.enter(READ, 3, Duration::ZERO), Entrance::Aside);
        assert_eq!(gate.enter(WRITE, 1, DAY), Entrance::Shut);
    }

    #[test]
    fn a_branch_is_not_in_its_own_way() {
        let gate = Gate::default();
        assert_eq!(gate.enter(WRITE, 1, DAY), Entrance::Open);
        assert_eq!(gate.enter(READ, 1, Duration::ZERO), Entrance::Open);
        gate.leave(WRITE, 1);
        assert_eq!(gate.enter(WRITE, 2, DAY), Entrance::Shut);
    }
}
