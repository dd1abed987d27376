use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

/// How long a full pool lets somebody wait, unless it is told otherwise.
const CHECKOUT: Duration = Duration::from_secs(30);

/// What one backend has to itself, and a clone of it does not share.
#[derive(Debug)]
pub(crate) struct Pool {
    id: PoolId,
    max: Option<usize>,
    checkout: Duration,
    closed: AtomicBool,
}

/// Identifies a pool among all of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolId(u64);

impl Pool {
    pub(crate) fn with_max_sessions(mut self, max: usize) -> Self {
        self.max = Some(max);
        self
    }

    pub(crate) fn with_checkout_timeout(mut self, checkout: Duration) -> Self {
        self.checkout = checkout;
        self
    }

    pub(crate) fn id(&self) -> PoolId {
        self.id
    }

    /// Whether there may be no further session. They are counted only if that matters.
    pub(crate) fn is_full(&self, sessions: impl FnOnce() -> usize) -> bool {
        self.max.is_some_and(|max| sessions() >= max)
    }

    /// How long to wait for a session to come free.
    pub(crate) fn checkout_timeout(&self) -> Duration {
        self.checkout
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

/// No sessions are open yet, and there may be any number of them.
impl Default for Pool {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            id: PoolId(NEXT.fetch_add(1, Ordering::Relaxed)),
            max: None,
            checkout: CHECKOUT,
            closed: AtomicBool::new(false),
        }
    }
}

/// Another pool of the same size.
impl Clone for Pool {
    fn clone(&self) -> Self {
        Self {
            max: self.max,
            checkout: self.checkout,
            ..Self::default()
        }
    }
}
