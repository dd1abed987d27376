use std::{
    collections::HashMap,
    mem,
    task::{Context, Waker},
};

use advisory_core::spi::SessionId;

/// The tasks that wait for something to happen to a session; one call of it at most.
///
/// Wakers are foreign code. Neither a wake nor the drop of one may happen while the state is
/// locked, so both are put off until [`take_due`](Self::take_due).
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    parked: HashMap<SessionId, Waker>,
    due: Due,
}

/// Wakers that have left the state. To be [`deliver`](Self::deliver)ed once it is unlocked.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Due {
    to_wake: Vec<Waker>,
    to_drop: Vec<Waker>,
}

impl Wakers {
    /// Remembers the task that is to be woken for this session.
    pub(crate) fn park(&mut self, session: SessionId, cx: &Context<'_>) {
        let waker = cx.waker();
        match self.parked.get(&session) {
            Some(parked) if parked.will_wake(waker) => {}
            _ => self
                .due
                .to_drop
                .extend(self.parked.insert(session, waker.clone())),
        }
    }

    pub(crate) fn wake(&mut self, session: SessionId) {
        self.due.to_wake.extend(self.parked.remove(&session));
    }

    pub(crate) fn wake_all(&mut self) {
        let parked = mem::take(&mut self.parked);
        self.due.to_wake.extend(parked.into_values());
    }

    pub(crate) fn forget(&mut self, session: SessionId) {
        self.due.to_drop.extend(self.parked.remove(&session));
    }

    pub(crate) fn take_due(&mut self) -> Due {
        mem::take(&mut self.due)
    }
}

impl Due {
    pub(crate) fn deliver(self) {
        for waker in self.to_wake {
            waker.wake();
        }
    }
}
