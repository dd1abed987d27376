use std::{
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
    thread,
};

use foldhash::HashMap;
use futures::task::ArcWake;
use smallvec::{SmallVec, smallvec};

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
    /// How many keep it quiet.
    hushed: usize,
    due: Due,
}

/// Who is to be woken when it is quiet no more.
#[derive(Debug, Default)]
enum Due {
    #[default]
    Nobody,
    Some(SmallVec<[u64; 2]>),
    All,
}

/// Keeps the bell quiet until it is dropped. A waker may run foreign code, which may come back to
/// whatever is locked meanwhile.
#[derive(Debug)]
pub(super) struct Hush<'a> {
    bell: &'a Bell,
}

impl Bell {
    pub(super) fn hush(&self) -> Hush<'_> {
        self.state().hushed += 1;
        Hush { bell: self }
    }

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

    /// Wakes one of them, once nobody keeps the bell quiet.
    pub(super) fn call(&self, listener: u64) {
        let mut state = self.state();
        match &mut state.due {
            due @ Due::Nobody => *due = Due::Some(smallvec![listener]),
            Due::Some(due) => due.push(listener),
            Due::All => {}
        }
        ring(state);
    }

    /// What they wait for is to be polled, without anybody being woken for it.
    pub(super) fn set_rung(&self) {
        self.rung.store(true, Ordering::Release);
    }

    /// Whether what they wait for is to be polled. To be asked before it is, and once.
    pub(super) fn take_rung(&self) -> bool {
        self.rung.swap(false, Ordering::AcqRel)
    }

    fn call_all(&self) {
        let mut state = self.state();
        state.due = Due::All;
        ring(state);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each step leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes whoever is due, unless it has to be quiet.
fn ring(mut state: MutexGuard<'_, State>) {
    if state.hushed > 0 {
        return;
    }
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

impl ArcWake for Bell {
    fn wake_by_ref(bell: &Arc<Self>) {
        bell.set_rung();
        bell.call_all();
    }
}

impl Drop for Hush<'_> {
    fn drop(&mut self) {
        let mut state = self.bell.state();
        state.hushed -= 1;
        if thread::panicking() {
            // What it was that panicked, others may be waiting for.
            state.due = Due::All;
        }
        ring(state);
    }
}
