use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use crate::{
    LockKey, LockMode,
    context::{Frame, FrameId},
    spi::Claim,
};

/// What an owner holds, has asked for, and waits for among its own frames.
///
/// The server sees one session, and grants it everything that it already has. So what keeps the
/// frames of one owner apart is decided here.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: HashMap<LockKey, Vec<Entry>>,
    /// Frames that wait for a sibling, and for whom.
    waits: Vec<Wait>,
    next_id: u64,
}

/// One hold of a frame, or one request that it has put to the server.
#[derive(Debug)]
struct Entry {
    id: u64,
    mode: LockMode,
    frame: FrameId,
    /// Whether the server has granted it.
    granted: bool,
}

#[derive(Debug)]
struct Wait {
    frame: Arc<Frame>,
    blockers: Vec<FrameId>,
}

/// Names an entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryId {
    key: LockKey,
    id: u64,
}

/// What the table says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The session already holds the claim, for the asking frame's use as well.
    Held(EntryId),
    /// The server is to be asked; the entry marks that this is going on.
    Ask(EntryId),
    /// A sibling frame holds the key, or is about to, in a mode that conflicts.
    Blocked,
    /// The claim has been asked for already; the answer decides.
    Undecided,
}

impl Table {
    /// Looks at a request of a frame, and enters it unless it has to wait.
    pub(super) fn request(&mut self, claim: Claim, frame: &Arc<Frame>) -> Verdict {
        let entries = self.entries.entry(claim.key).or_default();
        if entries.iter().any(|entry| entry.blocks(claim.mode, frame)) {
            return Verdict::Blocked;
        }
        let same = entries.iter().find(|entry| entry.mode == claim.mode);
        let granted = match same.map(|entry| entry.granted) {
            Some(false) => return Verdict::Undecided,
            Some(true) => true,
            None => false,
        };
        let id = self.next_id;
        self.next_id += 1;
        entries.push(Entry {
            id,
            mode: claim.mode,
            frame: frame.id(),
            granted,
        });
        let entry = EntryId { key: claim.key, id };
        if granted {
            Verdict::Held(entry)
        } else {
            Verdict::Ask(entry)
        }
    }

    /// Marks a request as granted by the server.
    pub(super) fn grant(&mut self, entry: EntryId) {
        let entries = self.entries.get_mut(&entry.key).into_iter().flatten();
        for found in entries.filter(|found| found.id == entry.id) {
            found.granted = true;
        }
    }

    /// Takes an entry out; whether it was the last one that stood for a lock on the server.
    pub(super) fn remove(&mut self, entry: EntryId) -> bool {
        let Some(entries) = self.entries.get_mut(&entry.key) else {
            return false;
        };
        let Some(at) = entries.iter().position(|found| found.id == entry.id) else {
            return false;
        };
        let removed = entries.swap_remove(at);
        let last = removed.granted && entries.iter().all(|other| other.mode != removed.mode);
        if entries.is_empty() {
            self.entries.remove(&entry.key);
        }
        last
    }

    pub(super) fn holds_anything(&self) -> bool {
        self.entries.values().flatten().any(|entry| entry.granted)
    }

    /// Enters a frame's wait for the siblings that block its request; `false` if they wait for it,
    /// directly or through others.
    pub(super) fn begin_wait(&mut self, claim: Claim, frame: &Arc<Frame>) -> bool {
        let blockers: Vec<_> = self
            .entries
            .get(&claim.key)
            .into_iter()
            .flatten()
            .filter(|entry| entry.blocks(claim.mode, frame))
            .map(|entry| entry.frame)
            .collect();
        if self.leads_back_to(frame, &blockers) {
            return false;
        }
        self.waits.push(Wait {
            frame: Arc::clone(frame),
            blockers,
        });
        true
    }

    /// Takes out one wait of the frame.
    pub(super) fn end_wait(&mut self, frame: &Arc<Frame>) {
        if let Some(at) = self
            .waits
            .iter()
            .position(|wait| Arc::ptr_eq(&wait.frame, frame))
        {
            self.waits.swap_remove(at);
        }
    }

    /// Whether the blockers can only go on once the frame, or one that encloses it, has ended. A
    /// frame cannot end while anything inside it waits.
    fn leads_back_to(&self, frame: &Arc<Frame>, blockers: &[FrameId]) -> bool {
        let mut seen = HashSet::new();
        let mut open = blockers.to_vec();
        while let Some(blocker) = open.pop() {
            if frame.is_within(blocker) {
                return true;
            }
            if seen.insert(blocker) {
                let held_up = self
                    .waits
                    .iter()
                    .filter(|wait| wait.frame.is_within(blocker));
                open.extend(held_up.flat_map(|wait| &wait.blockers));
            }
        }
        false
    }
}

impl Entry {
    /// Whether this entry keeps a request of the frame from being granted: it conflicts, and is
    /// neither the frame's own nor that of one that encloses it.
    fn blocks(&self, mode: LockMode, frame: &Arc<Frame>) -> bool {
        self.mode.conflicts_with(mode) && !frame.is_within(self.frame)
    }
}
