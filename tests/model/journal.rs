//! Whose each session is, and what it is doing.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use advisory::{SessionId, spi::Claim};

/// The sessions of one run of a program.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    /// Who takes the next step.
    owner: usize,
    /// How many sessions each owner has opened.
    opened: HashMap<usize, usize>,
    /// What the server calls them.
    numbers: HashMap<i64, Tag>,
    /// Those that have ended.
    gone: HashSet<Tag>,
    /// What they have sent an unlock for.
    freed: HashSet<(Tag, Claim)>,
    /// How many calls each owner's sessions have under way.
    calls: HashMap<usize, usize>,
}

/// A session, by whose it is and how many its owner had opened before.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Tag {
    pub(crate) owner: usize,
    nth: usize,
}

impl Journal {
    /// The next command is for this owner, and so are the sessions that are opened from now on.
    pub(crate) fn turn_to(&self, owner: usize) {
        self.entries().owner = owner;
    }

    /// A session is being opened.
    pub(crate) fn open(&self) -> Tag {
        let mut entries = self.entries();
        let owner = entries.owner;
        let opened = entries.opened.entry(owner).or_default();
        *opened += 1;
        let nth = *opened;
        Tag { owner, nth }
    }

    /// The server calls the session by this name.
    pub(crate) fn name(&self, session: Tag, id: SessionId) {
        self.entries().numbers.insert(id.number(), session);
    }

    /// The session asks for the claim.
    pub(crate) fn ask(&self, session: Tag, claim: Claim) {
        self.entries().freed.remove(&(session, claim));
    }

    /// The session sends an unlock.
    pub(crate) fn free(&self, session: Tag, claim: Claim) {
        self.entries().freed.insert((session, claim));
    }

    /// The session has ended.
    pub(crate) fn end(&self, session: Tag) {
        self.entries().gone.insert(session);
    }

    /// The session that the server calls by this number.
    pub(crate) fn tag(&self, number: i64) -> Option<Tag> {
        self.entries().numbers.get(&number).copied()
    }

    /// The session that the owner opened last.
    pub(crate) fn last(&self, owner: usize) -> Option<Tag> {
        let nth = *self.entries().opened.get(&owner)?;
        Some(Tag { owner, nth })
    }

    /// Whether the session has ended, or has given the claim back: it holds it no longer, or only
    /// until the server has heard of it.
    pub(crate) fn has_freed(&self, tag: Tag, claim: Claim) -> bool {
        let entries = self.entries();
        entries.gone.contains(&tag) || entries.freed.contains(&(tag, claim))
    }

    /// Whether the server owes the owner an answer, be it to what it has left behind.
    pub(crate) fn is_calling(&self, owner: usize) -> bool {
        self.entries().calls.contains_key(&owner)
    }

    /// Performs a call of this owner.
    pub(crate) async fn call<T>(&self, owner: usize, call: impl Future<Output = T>) -> T {
        *self.entries().calls.entry(owner).or_default() += 1;
        let _call = Call {
            journal: self,
            owner,
        };
        call.await
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that has not been answered.
struct Call<'a> {
    journal: &'a Journal,
    owner: usize,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut entries = self.journal.entries();
        if let Entry::Occupied(mut calls) = entries.calls.entry(self.owner) {
            *calls.get_mut() -= 1;
            if *calls.get() == 0 {
                calls.remove();
            }
        }
    }
}

/// `2.1`: the first session of owner 2.
impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.owner, self.nth)
    }
}
