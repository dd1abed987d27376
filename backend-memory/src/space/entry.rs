use std::collections::{BTreeMap, VecDeque};

use advisory_core::{LockMode, spi::SessionId};

/// One key of the lock table: who holds it, and who waits for it.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// How many times each session holds the key. Exclusive holds sort first, and one session at
    /// most has any, so whatever conflicts with a request stands at the front.
    holds: BTreeMap<(LockMode, SessionId), usize>,
    /// Front first. The places ascend.
    queue: VecDeque<Waiter>,
}

/// A request in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiter {
    pub(super) session: SessionId,
    pub(super) mode: LockMode,
    pub(super) place: Place,
}

/// Where a request belongs in a queue; lower is nearer to the front.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(pub(super) u64);

impl Entry {
    /// Grants the request if it conflicts neither with what other sessions hold nor with any
    /// request in the queue. The latter counts even where a blocking request would be let in front
    /// of the queue and granted: servers before PostgreSQL 17 answer like that.
    pub(super) fn try_lock(&mut self, session: SessionId, mode: LockMode) -> bool {
        let held_already = self.holds.contains_key(&(mode, session));
        let granted = held_already
            || !(self.is_held_against(session, mode)
                || self.queue.iter().any(|w| w.mode.conflicts_with(mode)));
        if granted {
            self.grant(session, mode);
        }
        granted
    }

    /// Takes one count away; whether there was one.
    pub(super) fn unlock(&mut self, session: SessionId, mode: LockMode) -> bool {
        let Some(count) = self.holds.get_mut(&(mode, session)) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            self.holds.remove(&(mode, session));
        }
        true
    }

    /// Queues a request at its place, but behind those that hold what it waits for, and in front of
    /// those that wait for what its session holds: in another order two would wait for each other.
    pub(super) fn enqueue(&mut self, waiter: Waiter) {
        let at_place = self
            .queue
            .partition_point(|queued| queued.place <= waiter.place);
        let behind_holders = self
            .queue
            .range(at_place..)
            .rposition(|queued| self.holds_against(queued.session, waiter.mode))
            .map_or(at_place, |last| at_place + last + 1);
        let in_front = self
            .queue
            .iter()
            .position(|queued| self.holds_against(waiter.session, queued.mode))
            .unwrap_or(self.queue.len());
        self.queue.insert(behind_holders.min(in_front), waiter);
        self.align_places();
    }

    /// Takes a session's request out of the queue.
    pub(super) fn dequeue(&mut self, session: SessionId) -> Option<Waiter> {
        let mut queue = self.queue.iter();
        let at = queue.position(|waiter| waiter.session == session)?;
        self.queue.remove(at)
    }

    /// Puts a session's request in front of all others.
    pub(super) fn advance(&mut self, session: SessionId) {
        if let Some(waiter) = self.dequeue(session) {
            self.queue.push_front(waiter);
            self.align_places();
        }
    }

    /// Grants requests, front first, up to one that conflicts with what others hold. Whatever is
    /// behind that one conflicts with it or with the same holders. Returns whose they were.
    pub(super) fn grant_waiters(&mut self) -> Vec<SessionId> {
        let mut granted = Vec::new();
        while let Some(&Waiter { session, mode, .. }) = self.queue.front()
            && !self.is_held_against(session, mode)
        {
            self.queue.pop_front();
            self.grant(session, mode);
            granted.push(session);
        }
        granted
    }

    /// Frees everything that the session holds here.
    pub(super) fn free(&mut self, session: SessionId) {
        for mode in MODES {
            self.holds.remove(&(mode, session));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.holds.is_empty() && self.queue.is_empty()
    }

    pub(super) fn is_held_by(&self, session: SessionId) -> bool {
        MODES
            .iter()
            .any(|mode| self.holds.contains_key(&(*mode, session)))
    }

    pub(super) fn holds(&self) -> impl Iterator<Item = (SessionId, LockMode)> {
        self.holds.keys().map(|&(mode, session)| (session, mode))
    }

    pub(super) fn queue(&self) -> impl Iterator<Item = &Waiter> {
        self.queue.iter()
    }

    /// The requests in front of the session's own, which is in the queue.
    pub(super) fn ahead_of(&self, session: SessionId) -> impl Iterator<Item = &Waiter> {
        let queue = self.queue.iter();
        queue.take_while(move |waiter| waiter.session != session)
    }

    /// What other sessions hold that conflicts with a request.
    pub(super) fn held_against(
        &self,
        session: SessionId,
        mode: LockMode,
    ) -> impl Iterator<Item = (SessionId, LockMode)> {
        self.holds()
            .take_while(move |(_, held)| held.conflicts_with(mode))
            .filter(move |(holder, _)| *holder != session)
    }

    fn is_held_against(&self, session: SessionId, mode: LockMode) -> bool {
        self.held_against(session, mode).next().is_some()
    }

    /// Whether the session itself holds what conflicts with a request of somebody else.
    fn holds_against(&self, session: SessionId, mode: LockMode) -> bool {
        MODES
            .iter()
            .any(|held| held.conflicts_with(mode) && self.holds.contains_key(&(*held, session)))
    }

    fn grant(&mut self, session: SessionId, mode: LockMode) {
        *self.holds.entry((mode, session)).or_default() += 1;
    }

    /// Gives requests that were let in front of others a place in front of theirs.
    fn align_places(&mut self) {
        let mut next = Place(u64::MAX);
        for waiter in self.queue.iter_mut().rev() {
            waiter.place = waiter.place.min(next);
            next = waiter.place;
        }
    }
}

const MODES: [LockMode; 2] = [LockMode::Exclusive, LockMode::Shared];
