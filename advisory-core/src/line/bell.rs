use std::{
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
};

use foldhash::HashMap;
use futures::task::ArcWake;
use smallvec::{SmallVec, smallvec};

use super::hush;

/// Wakes everybody who has asked for it, each of whom may do what the others wait for.
///
/// A future that several tasks may poll remembers the waker of the last one only, and that task may
/// have no mind to poll it again. So it is polled with this one.
#[derive(Debug, Default)]
pub(super) struct Bell {
    state: Mutex<State>,
    /// Whether what they wait for is to be polled: it is new, or has rung since it was polled.
    rung: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    listeners: HashMap<u64, Waker>,
    due: Due,
}

/// Who is to be woken.
#[derive(Debug, Default)]
enum Due {
    #[default]
    Nobody,
    Some(SmallVec<[u64; 2]>),
    All,
}

impl Bell {
    pub(super) fn listen(&self, listener: u64, waker: &Waker) {
        let mut state = self.state();
        let known = state.listeners.get(&listener);
        if !known.is_some_and(|known| known.will_wake(waker)) {
            let known = state.listeners.insert(listener, waker.clone());
            drop(state);
            // A waker's drop may run foreign code as well.
            drop(known);
        }
    }

    pub(super) fn forget(&self, listener: u64) {
        let forgotten = self.state().listeners.remove(&listener);
        drop(forgotten);
    }

    /// Wakes one of them, once this thread has locked no line.
    pub(super) fn call(self: &Arc<Self>, listener: u64) {
        match &mut self.state().due {
            due @ Due::Nobody => *due = Due::Some(smallvec![listener]),
            Due::Some(due) => due.push(listener),
            Due::All => {}
        }
        self.ring_or_wait();
    }

    /// What they wait for is to be polled, without anybody being woken for it.
    pub(super) fn set_rung(&self) {
        self.rung.store(true, Ordering::Release);
    }

    /// Whether what they wait for is to be polled. To be asked before it is, and once.
    pub(super) fn take_rung(&self) -> bool {
        self.rung.swap(false, Ordering::AcqRel)
    }

    /// Wakes all of them, once this thread has locked no line.
    pub(super) fn call_all(self: &Arc<Self>) {
        self.state().due = Due::All;
        self.ring_or_wait();
    }

    fn ring_or_wait(self: &Arc<Self>) {
        if !hush::rings_later(self) {
            self.ring();
        }
    }

    /// Wakes whoever is due.
    pub(super) fn ring(&self) {
        let mut state = self.state();
        let wakers: SmallVec<[Waker; 2]> = match mem::take(&mut state.due) {
            Due::Nobody => return,
            Due::Some(due) => {
                let listeners = due.iter().filter_map(|due| state.listeners.get(due));
                listeners.cloned().collect()
            }
            Due::All => state.listeners.values().cloned().collect(),
        };
        drop(state);
        for waker in wakers {
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each step leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ArcWake for Bell {
    fn wake_by_ref(bell: &Arc<Self>) {
        bell.set_rung();
        bell.call_all();
    }
}
