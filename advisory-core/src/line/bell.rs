use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Wake, Waker},
};

/// Wakes everybody who has asked for it, each of whom may do what the others wait for.
///
/// A future that several tasks may poll remembers the waker of the last one only, and that task may
/// have no mind to poll it again. So it is polled with this one.
#[derive(Debug, Default)]
pub(super) struct Bell {
    listeners: Mutex<HashMap<u64, Waker>>,
}

impl Bell {
    pub(super) fn listen(&self, listener: u64, waker: &Waker) {
        let mut listeners = self.listeners();
        match listeners.get_mut(&listener) {
            Some(known) => known.clone_from(waker),
            None => drop(listeners.insert(listener, waker.clone())),
        }
    }

    pub(super) fn forget(&self, listener: u64) {
        // A waker's drop may run foreign code, so not while the list is locked.
        let forgotten = self.listeners().remove(&listener);
        drop(forgotten);
    }

    /// Wakes one of them.
    pub(super) fn call(&self, listener: u64) {
        let waker = self.listeners().get(&listener).cloned();
        waker.inspect(Waker::wake_by_ref);
    }

    fn listeners(&self) -> MutexGuard<'_, HashMap<u64, Waker>> {
        // Entries are added and removed whole.
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let wakers: Vec<_> = self.listeners().values().cloned().collect();
        for waker in wakers {
            waker.wake();
        }
    }
}
