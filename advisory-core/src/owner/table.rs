use std::{collections::HashSet, sync::Arc};

use foldhash::HashMap;
use smallvec::SmallVec;

use crate::{
    FencingToken, LockKey, LockMode,
    context::{Frame, FrameId},
    spi::Claim,
};

/// What an owner holds, has asked for, and waits for among its own frames.
///
/// The server sees one session, and grants it everything that it already has. So what keeps the
/// frames of one owner apart is decided here.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: HashMap<LockKey, SmallVec<[Entry; 1]>>,
    /// Frames that wait for a sibling, and for whom.
    waits: Vec<Wait>,
    /// Tokens of claims that are held.
    tokens: HashMap<Claim, FencingToken>,
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
pub(crate) struct EntryId {
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
    pub(super) fn request(&mut self, claim: Claim, frame: &Frame) -> Verdict {
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
        // What enters again belongs to the frame that lets it, so that siblings under one lock do
        // not exclude each other.
        let host = entries.iter().find(|entry| entry.hosts(claim.mode, frame));
        let host = host.map_or(frame.id(), |entry| entry.frame);
        let id = self.next_id;
        self.next_id += 1;
        entries.push(Entry {
            id,
            mode: claim.mode,
            frame: host,
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
        let mode = removed.mode;
        let last = removed.granted && entries.iter().all(|other| other.mode != mode);
        if entries.is_empty() {
            self.entries.remove(&entry.key);
        }
        if last {
            let key = entry.key;
            self.tokens.remove(&Claim { key, mode });
        }
        last
    }

    /// Makes a granted entry another frame's, whose token is a new one.
    pub(super) fn take_over(&mut self, entry: EntryId, frame: &Frame) {
        let entries = self.entries.get_mut(&entry.key).into_iter().flatten();
        for found in entries.filter(|found| found.id == entry.id) {
            found.frame = frame.id();
        }
        self.tokens.clear();
    }

    /// Whether there is no other entry than this one.
    pub(super) fn is_all(&self, entry: EntryId) -> bool {
        let mut entries = self.entries.iter();
        match (entries.next(), entries.next()) {
            (Some((key, entries)), None) => {
                *key == entry.key && matches!(&entries[..], [only] if only.id == entry.id)
            }
            _ => false,
        }
    }

    pub(super) fn token(&self, claim: Claim) -> Option<FencingToken> {
        self.tokens.get(&claim).copied()
    }

    /// Keeps the token of a held claim, unless there is one.
    pub(super) fn keep_token(&mut self, claim: Claim, token: FencingToken) -> FencingToken {
        *self.tokens.entry(claim).or_insert(token)
    }

    /// The claims that the server has granted.
    pub(super) fn held(&self) -> Vec<Claim> {
        let entries = self.entries.iter().flat_map(|(key, entries)| {
            let granted = entries.iter().filter(|entry| entry.granted);
            granted.map(|entry| Claim {
                key: *key,
                mode: entry.mode,
            })
        });
        entries.collect()
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
    fn leads_back_to(&self, frame: &Frame, blockers: &[FrameId]) -> bool {
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
    /// Whether the frame, or one that encloses it, already holds by this entry what it asks for.
    fn hosts(&self, mode: LockMode, frame: &Frame) -> bool {
        let covers = self.mode == mode || self.mode == LockMode::Exclusive;
        self.granted && covers && frame.is_within(self.frame)
    }

    /// Whether this entry keeps a request of the frame from being granted: it conflicts, and is
    /// neither the frame's own nor that of one that encloses it.
    fn blocks(&self, mode: LockMode, frame: &Frame) -> bool {
        self.mode.conflicts_with(mode) && !frame.is_within(self.frame)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;
    use crate::context::ManagerId;

    const K: LockKey = LockKey::BigInt(1);
    const L: LockKey = LockKey::BigInt(2);

    fn root() -> Arc<Frame> {
        Frame::open(ManagerId::next(), Weak::new(), None)
    }

    fn inside(parent: &Arc<Frame>) -> Arc<Frame> {
        Frame::open(parent.manager(), Weak::new(), Some(Arc::clone(parent)))
    }

    fn exclusive(key: LockKey) -> Claim {
        let mode = LockMode::Exclusive;
        Claim { key, mode }
    }

    fn shared(key: LockKey) -> Claim {
        let mode = LockMode::Shared;
        Claim { key, mode }
    }

    /// Requests what the server is asked for and grants.
    fn take(table: &mut Table, claim: Claim, frame: &Arc<Frame>) -> EntryId {
        let Verdict::Ask(entry) = table.request(claim, frame) else {
            panic!("the server was not to be asked for {claim:?}");
        };
        table.grant(entry);
        entry
    }

    #[test]
    fn a_frame_enters_again_what_it_or_an_enclosing_one_holds() {
        let (mut table, outer) = (Table::default(), root());
        take(&mut table, exclusive(K), &outer);

        for frame in [&outer, &inside(&outer), &inside(&inside(&outer))] {
            assert!(matches!(
                table.request(exclusive(K), frame),
                Verdict::Held(_)
            ));
        }
    }

    #[test]
    fn the_server_is_told_when_the_last_count_of_a_mode_is_gone() {
        let (mut table, frame) = (Table::default(), root());
        let first = take(&mut table, exclusive(K), &frame);
        let reading = take(&mut table, shared(K), &frame);
        let Verdict::Held(again) = table.request(exclusive(K), &frame) else {
            panic!("not entered again");
        };

        assert!(!table.remove(first));
        assert!(table.remove(again));
        assert!(!table.remove(again), "removed twice");
        assert_eq!(table.held(), [shared(K)]);
        assert!(table.remove(reading));
        assert!(!table.holds_anything());
    }

    #[test]
    fn a_sibling_is_kept_out_until_the_key_is_free() {
        let (mut table, outer) = (Table::default(), root());
        let (left, right) = (inside(&outer), inside(&outer));
        let entry = take(&mut table, exclusive(K), &left);

        assert_eq!(table.request(exclusive(K), &right), Verdict::Blocked);
        assert_eq!(table.request(shared(K), &right), Verdict::Blocked);
        assert_eq!(table.request(exclusive(K), &outer), Verdict::Blocked);
        table.remove(entry);
        assert!(matches!(
            table.request(exclusive(K), &right),
            Verdict::Ask(_)
        ));
    }

    #[test]
    fn siblings_read_together() {
        let (mut table, outer) = (Table::default(), root());
        let (left, right) = (inside(&outer), inside(&outer));
        take(&mut table, shared(K), &left);

        assert!(matches!(table.request(shared(K), &right), Verdict::Held(_)));
        assert_eq!(table.request(exclusive(K), &right), Verdict::Blocked);
    }

    #[test]
    fn one_question_at_a_time_is_put_to_the_server() {
        let (mut table, frame) = (Table::default(), root());
        let Verdict::Ask(asked) = table.request(exclusive(K), &frame) else {
            panic!("nobody was asked");
        };

        assert_eq!(table.request(exclusive(K), &frame), Verdict::Undecided);
        assert!(!table.remove(asked), "it was never granted");
        assert!(matches!(
            table.request(exclusive(K), &frame),
            Verdict::Ask(_)
        ));
    }

    #[test]
    fn siblings_that_wait_for_each_other_are_found() {
        let (mut table, outer) = (Table::default(), root());
        let (left, right) = (inside(&outer), inside(&outer));
        take(&mut table, exclusive(K), &left);
        take(&mut table, exclusive(L), &right);

        assert!(table.begin_wait(exclusive(L), &inside(&left)));
        assert!(!table.begin_wait(exclusive(K), &inside(&right)));
        table.end_wait(&left);
    }

    #[test]
    fn a_wait_that_has_ended_is_part_of_no_cycle() {
        let (mut table, outer) = (Table::default(), root());
        let (left, right) = (inside(&outer), inside(&outer));
        take(&mut table, exclusive(K), &left);
        take(&mut table, exclusive(L), &right);

        assert!(table.begin_wait(exclusive(L), &left));
        table.end_wait(&left);
        assert!(table.begin_wait(exclusive(K), &right));
    }

    #[test]
    fn a_cycle_of_three_is_found() {
        let (mut table, outer) = (Table::default(), root());
        let frames = [inside(&outer), inside(&outer), inside(&outer)];
        let keys = [K, L, LockKey::Pair(1, 2)].map(exclusive);
        for (claim, frame) in keys.into_iter().zip(&frames) {
            take(&mut table, claim, frame);
        }

        assert!(table.begin_wait(keys[1], &frames[0]));
        assert!(table.begin_wait(keys[2], &frames[1]));
        assert!(!table.begin_wait(keys[0], &frames[2]));
    }
}
