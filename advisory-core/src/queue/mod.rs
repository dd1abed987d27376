//! Those of this process who want the same key: one of them asks the server, the others wait for
//! him here.

mod turns;

use std::{
    fmt,
    future::Future,
    hash::Hash,
    mem,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use foldhash::HashMap;

use self::turns::Turns;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The queues of a manager, by key.
///
/// Whoever finds nobody at a key *leads*: he goes to the server, and holds the lock after that. All
/// who come later wait until he passes the lead on, first come first served, and with it a *baton*:
/// what he has acquired so far. Without a baton the next one begins anew. Followers who run out of
/// patience can ask the leader's *witness* what it is that keeps him.
///
/// A leader may be past caring: his future has been leaked, or is kept by a task that does not poll
/// it, or the server has freed his lock long ago. So somebody has to [look](Self::look) now and
/// then.
#[derive(Debug)]
pub(crate) struct Queues<K, B, W> {
    state: Mutex<State<K, B, W>>,
}

#[derive(Debug)]
struct State<K, B, W> {
    of_key: HashMap<K, Turns<B, W>>,
    next_place: PlaceId,
    /// Whether somebody has promised to look.
    looked_after: bool,
}

/// Names a place in a queue.
type PlaceId = u64;

impl<K: Copy + Eq + Hash, B, W: Clone> Queues<K, B, W> {
    /// Takes the last place in the queue of a key.
    pub(crate) fn join(queues: &Arc<Self>, key: K) -> Place<K, B, W> {
        let mut state = queues.state();
        let id = state.next_place;
        state.next_place += 1;
        match state.of_key.get_mut(&key) {
            Some(turns) => turns.queue_up(id),
            None => drop(state.of_key.insert(key, Turns::led_by(id))),
        }
        drop(state);
        Place {
            queues: Arc::clone(queues),
            key,
            id,
            left: false,
        }
    }

    /// For one who waits: whether somebody has to begin to [look](Self::look), and go on until that
    /// says that nobody waits.
    pub(crate) fn wants_looks(&self) -> bool {
        !mem::replace(&mut self.state().looked_after, true)
    }

    /// Takes the lead from those who have done nothing with it since the last look, and from holders
    /// of keys that are not to be relied on as held any more. `false` when nobody waits.
    ///
    /// Looks have to be so far apart that a task which is woken by one has run before the next.
    pub(crate) fn look(&self, is_held: impl Fn(K) -> bool) -> bool {
        let mut seen = Vec::new();
        let mut state = self.state();
        state.of_key.retain(|key, turns| {
            let after = turns.look(|| is_held(*key));
            let stays = !after.deserted;
            seen.push(after);
            stays
        });
        state.looked_after = state.of_key.values().any(Turns::is_awaited);
        let goes_on = state.looked_after;
        drop(state);
        for after in seen {
            drop(after.finish());
        }
        goes_on
    }

    fn state(&self) -> MutexGuard<'_, State<K, B, W>> {
        // Each step leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, B, W> Default for Queues<K, B, W> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                of_key: HashMap::default(),
                next_place: 0,
                looked_after: false,
            }),
        }
    }
}

/// A place in the queue of a key: a waiter's, or the leader's. Its drop leaves the queue; if it led,
/// the next one does.
pub(crate) struct Place<K: Copy + Eq + Hash, B, W: Clone> {
    queues: Arc<Queues<K, B, W>>,
    key: K,
    id: PlaceId,
    left: bool,
}

impl<K: Copy + Eq + Hash, B, W: Clone> Place<K, B, W> {
    pub(crate) fn key(&self) -> &K {
        &self.key
    }

    /// Waits for the lead, and ends with the baton that came with it.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called anew at any time; the place stays.
    pub(crate) fn turn(&self) -> Turn<'_, K, B, W> {
        Turn { place: self }
    }

    /// Takes the lead, and the baton that came with it, if it is this place's turn by now. It may be
    /// by the time that the place has been taken.
    pub(crate) fn come(&self) -> Poll<Option<B>> {
        let turn = self.with_turns(|turns| turns.come(self.id));
        // If nobody is left at the key, the lead was taken from this place, and passed on.
        turn.unwrap_or(Poll::Ready(None))
    }

    /// Marks that the leader is at work on getting the lock. Whoever polls that work says so each
    /// time.
    pub(crate) fn leads(&self, waker: &Waker) {
        self.with_turns(|turns| turns.leads(self.id, waker));
    }

    /// Leaves word with the followers, as long as this place leads.
    pub(crate) fn testify(&self, witness: W) {
        self.with_turns(|turns| turns.testify(self.id, witness));
    }

    /// What the leader has left word of.
    pub(crate) fn witness(&self) -> Option<W> {
        self.with_turns(|turns| turns.witness()).flatten()
    }

    /// Marks that the leader has the lock.
    pub(crate) fn holds(&self) {
        self.with_turns(|turns| turns.holds(self.id));
    }

    /// Whether somebody waits for this leader to pass the lead on.
    pub(crate) fn is_followed(&self) -> bool {
        let followed = self.with_turns(|turns| turns.is_followed(self.id));
        followed.unwrap_or(false)
    }

    /// Leaves the queue, and passes the lead on with a baton. It comes back if there is nobody to
    /// take it.
    pub(crate) fn pass(mut self, baton: B) -> Option<B> {
        self.leave(Some(baton))
    }

    fn leave(&mut self, baton: Option<B>) -> Option<B> {
        self.left = true;
        let mut state = self.queues.state();
        let Some(turns) = state.of_key.get_mut(&self.key) else {
            return baton;
        };
        let after = turns.leave(self.id, baton);
        if after.deserted {
            state.of_key.remove(&self.key);
        }
        drop(state);
        after.finish()
    }

    fn with_turns<T>(&self, step: impl FnOnce(&mut Turns<B, W>) -> T) -> Option<T> {
        self.queues.state().of_key.get_mut(&self.key).map(step)
    }
}

impl<K: Copy + Eq + Hash, B, W: Clone> Drop for Place<K, B, W> {
    fn drop(&mut self) {
        if !self.left {
            self.leave(None);
        }
    }
}

impl<K: Copy + Eq + Hash, B, W: Clone> fmt::Debug for Place<K, B, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Place").field(&self.id).finish()
    }
}

/// See [`Place::turn`].
#[must_use = "a turn that is not awaited does not come"]
pub(crate) struct Turn<'a, K: Copy + Eq + Hash, B, W: Clone> {
    place: &'a Place<K, B, W>,
}

impl<K: Copy + Eq + Hash, B, W: Clone> Future for Turn<'_, K, B, W> {
    type Output = Option<B>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<B>> {
        let polled = self
            .place
            .with_turns(|turns| turns.poll(self.place.id, cx.waker()));
        // As above.
        polled.map_or(Poll::Ready(None), |(turn, _)| turn)
    }
}
