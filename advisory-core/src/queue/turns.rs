use std::{
    collections::VecDeque,
    mem,
    task::{Poll, Waker},
};

use super::PlaceId;

/// Whose turn it is at one key: the state of its queue, which is only ever seen between two steps.
#[derive(Debug)]
pub(super) struct Turns<B, W> {
    leader: Leader<B, W>,
    /// In the order of their arrival, which is that of their ids.
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Leader<B, W> {
    id: PlaceId,
    stage: Stage<B>,
    witness: Option<W>,
    /// Whether it has done nothing since the last look.
    idle: bool,
    waker: Option<Waker>,
}

#[derive(Debug)]
enum Stage<B> {
    /// It has got the lead, and has not come for it yet.
    Called(Option<B>),
    /// It tries to get the lock.
    Leads,
    /// It has the lock.
    Holds,
}

#[derive(Debug)]
struct Waiter {
    id: PlaceId,
    waker: Option<Waker>,
}

/// What a step leaves to be done once the queue is unlocked: wakers run foreign code, when they are
/// dropped as well.
#[derive(Debug)]
#[must_use = "somebody may have to be woken"]
pub(super) struct After<B> {
    /// Nobody took it.
    pub(super) baton: Option<B>,
    pub(super) wake: Option<Waker>,
    pub(super) forget: Option<Waker>,
    /// Whether nobody is left.
    pub(super) deserted: bool,
}

impl<B> After<B> {
    /// Does it, and returns what nobody took.
    pub(super) fn finish(self) -> Option<B> {
        drop(self.forget);
        self.wake.inspect(Waker::wake_by_ref);
        self.baton
    }
}

impl<B, W: Clone> Turns<B, W> {
    pub(super) fn led_by(id: PlaceId) -> Self {
        Self {
            leader: Leader::new(id, Stage::Leads, None),
            waiting: VecDeque::new(),
        }
    }

    pub(super) fn queue_up(&mut self, id: PlaceId) {
        self.waiting.push_back(Waiter { id, waker: None });
    }

    /// Whether it is the turn of this place, and what it finds then. One that has lost the lead has
    /// nobody to wait for.
    pub(super) fn come(&mut self, id: PlaceId) -> Poll<Option<B>> {
        if self.leader.id == id {
            return Poll::Ready(self.leader.come());
        }
        match self.position(id) {
            Some(_) => Poll::Pending,
            None => Poll::Ready(None),
        }
    }

    /// The same for one who wants to be woken when it is; returns the waker that he had before.
    pub(super) fn poll(&mut self, id: PlaceId, waker: &Waker) -> (Poll<Option<B>>, Option<Waker>) {
        let turn = self.come(id);
        let at = self.position(id);
        let before = at.and_then(|at| note(&mut self.waiting[at].waker, waker));
        (turn, before)
    }

    /// The leader is at it; returns the waker that it had before.
    pub(super) fn leads(&mut self, id: PlaceId, waker: &Waker) -> Option<Waker> {
        if self.leader.id != id {
            return None;
        }
        self.leader.idle = false;
        note(&mut self.leader.waker, waker)
    }

    /// Who can tell what the leader is up against.
    pub(super) fn testify(&mut self, id: PlaceId, witness: W) {
        if self.leader.id == id {
            self.leader.witness = Some(witness);
        }
    }

    pub(super) fn witness(&self) -> Option<W> {
        self.leader.witness.clone()
    }

    /// The leader has the lock, and no need to be woken.
    pub(super) fn holds(&mut self, id: PlaceId) -> Option<Waker> {
        if self.leader.id != id {
            return None;
        }
        self.leader.stage = Stage::Holds;
        self.leader.waker.take()
    }

    pub(super) fn is_followed(&self, id: PlaceId) -> bool {
        self.leader.id == id && !self.waiting.is_empty()
    }

    /// Whether somebody waits, for the lead or, unable to know, to come for it.
    pub(super) fn is_awaited(&self) -> bool {
        !self.waiting.is_empty() || matches!(self.leader.stage, Stage::Called(Some(_)))
    }

    /// Takes a place out. The leader's baton goes to the next one, and so does one that the leader
    /// has been given and not come for.
    pub(super) fn leave(&mut self, id: PlaceId, baton: Option<B>) -> After<B> {
        if self.leader.id == id {
            let unclaimed = self.leader.baton();
            return self.depose(baton.or(unclaimed));
        }
        let waiter = self.position(id).and_then(|at| self.waiting.remove(at));
        After {
            baton,
            wake: None,
            forget: waiter.and_then(|waiter| waiter.waker),
            deserted: false,
        }
    }

    /// Sees whether the leader is still up to it, and deposes it if it is not.
    pub(super) fn look(&mut self, is_held: impl FnOnce() -> bool) -> After<B> {
        let is_up_to_it = match &self.leader.stage {
            _ if !self.is_awaited() => true,
            Stage::Holds => is_held(),
            Stage::Called(_) | Stage::Leads => !mem::replace(&mut self.leader.idle, true),
        };
        if !is_up_to_it {
            let unclaimed = self.leader.baton();
            return self.depose(unclaimed);
        }
        After {
            baton: None,
            wake: self.leader.waker.clone(),
            forget: None,
            deserted: false,
        }
    }

    /// Makes the next one the leader.
    fn depose(&mut self, baton: Option<B>) -> After<B> {
        let Some(next) = self.waiting.pop_front() else {
            return After {
                baton,
                wake: None,
                forget: self.leader.waker.take(),
                deserted: true,
            };
        };
        let wake = next.waker.clone();
        let next = Leader::new(next.id, Stage::Called(baton), next.waker);
        After {
            baton: None,
            wake,
            forget: mem::replace(&mut self.leader, next).waker,
            deserted: false,
        }
    }

    fn position(&self, id: PlaceId) -> Option<usize> {
        self.waiting
            .binary_search_by_key(&id, |waiter| waiter.id)
            .ok()
    }
}

impl<B, W> Leader<B, W> {
    fn new(id: PlaceId, stage: Stage<B>, waker: Option<Waker>) -> Self {
        Self {
            id,
            stage,
            witness: None,
            idle: false,
            waker,
        }
    }

    fn come(&mut self) -> Option<B> {
        self.idle = false;
        let baton = self.baton();
        if let Stage::Called(_) = self.stage {
            self.stage = Stage::Leads;
        }
        baton
    }

    fn baton(&mut self) -> Option<B> {
        match &mut self.stage {
            Stage::Called(baton) => baton.take(),
            Stage::Leads | Stage::Holds => None,
        }
    }
}

/// Has somebody woken by this waker from now on; returns the one that it replaces.
fn note(slot: &mut Option<Waker>, waker: &Waker) -> Option<Waker> {
    if slot.as_ref().is_some_and(|known| known.will_wake(waker)) {
        return None;
    }
    slot.replace(waker.clone())
}
