//! Quiet while a line is locked.
//!
//! A waker runs foreign code, and so does the drop of a session: an executor may poll the task right
//! there, which goes on and comes back to a line that this thread has locked, the one that woke it or
//! another. So what is due on a thread waits until the thread has locked none.

use std::{
    cell::{Cell, RefCell},
    marker::PhantomData,
    mem::ManuallyDrop,
    sync::Arc,
    thread,
};

use smallvec::SmallVec;

use super::bell::Bell;
use crate::spi::LockSession;

thread_local! {
    /// How many lines this thread has locked, one inside the other.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Empty unless a line is locked, so there is nothing to drop at the end of the thread, and it
    /// can be used until then.
    static DUE: ManuallyDrop<RefCell<Due>> = const {
        ManuallyDrop::new(RefCell::new(Due { bells: SmallVec::new_const(), gone: Vec::new() }))
    };
}

/// What waits until it is no longer quiet.
struct Due {
    bells: SmallVec<[Arc<Bell>; 2]>,
    gone: Vec<Box<dyn LockSession>>,
}

/// Keeps this thread quiet until it is dropped, which has to be after the line has been unlocked.
#[derive(Debug)]
pub(super) struct Hush<'a> {
    bell: &'a Arc<Bell>,
    /// It belongs to this thread.
    _thread: PhantomData<*const ()>,
}

impl<'a> Hush<'a> {
    /// Before the line of this bell is locked.
    pub(super) fn new(bell: &'a Arc<Bell>) -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self {
            bell,
            _thread: PhantomData,
        }
    }
}

impl Drop for Hush<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            // What it was that panicked, others may be waiting for.
            self.bell.call_all();
        }
        let depth = DEPTH.get() - 1;
        DEPTH.set(depth);
        if depth > 0 {
            return;
        }
        while let Some(bell) = DUE.with(|due| due.borrow_mut().bells.pop()) {
            bell.ring();
        }
        while let Some(session) = DUE.with(|due| due.borrow_mut().gone.pop()) {
            drop(session);
        }
    }
}

/// Whether the bell has to be quiet now. Then it rings later.
pub(super) fn rings_later(bell: &Arc<Bell>) -> bool {
    if DEPTH.get() == 0 {
        return false;
    }
    DUE.with(|due| {
        let bells = &mut due.borrow_mut().bells;
        if !bells.iter().any(|due| Arc::ptr_eq(due, bell)) {
            bells.push(Arc::clone(bell));
        }
    });
    true
}

/// Drops a session that has ended, as soon as that may run foreign code.
pub(super) fn drop_later(session: Box<dyn LockSession>) {
    if DEPTH.get() > 0 {
        DUE.with(|due| due.borrow_mut().gone.push(session));
    }
}
