use std::{
    collections::HashMap,
    sync::{
        LazyLock, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::spi::SessionId;

/// How old a sign of life may be for others to rely on it instead of asking the server.
const TRUSTED_FOR: Duration = Duration::from_secs(10);

/// What is known of a session without asking it, for those who only look.
#[derive(Debug)]
pub(crate) struct Vitals {
    id: OnceLock<SessionId>,
    opened: Instant,
    /// When the session last answered, in milliseconds after it was opened.
    heard: AtomicU64,
    lost: AtomicBool,
}

impl Vitals {
    pub(super) fn new() -> Self {
        Self {
            id: OnceLock::new(),
            opened: Instant::now(),
            heard: AtomicU64::new(0),
            lost: AtomicBool::new(false),
        }
    }

    /// The session has answered.
    pub(super) fn hear(&self, id: Option<SessionId>) {
        self.heard.store(self.age(), Ordering::Relaxed);
        if let (None, Some(id)) = (self.id.get(), id)
            && self.id.set(id).is_ok()
        {
            *alive().entry(id).or_default() += 1;
        }
    }

    pub(super) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    pub(crate) fn id(&self) -> Option<SessionId> {
        self.id.get().copied()
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Whether the session was seen alive so recently that what it holds counts as held.
    pub(crate) fn is_trusted(&self) -> bool {
        !self.is_lost() && self.silent_for() < TRUSTED_FOR
    }

    /// How long ago the session last answered.
    pub(crate) fn silent_for(&self) -> Duration {
        let heard = self.heard.load(Ordering::Relaxed);
        Duration::from_millis(self.age().saturating_sub(heard))
    }

    fn age(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Drop for Vitals {
    fn drop(&mut self) {
        let Some(id) = self.id.get() else { return };
        let mut alive = alive();
        if let Some(count) = alive.get_mut(id) {
            *count -= 1;
            if *count == 0 {
                alive.remove(id);
            }
        }
    }
}

/// Whether a session belongs to this process, to any of its managers.
pub(crate) fn is_ours(id: SessionId) -> bool {
    alive().contains_key(&id)
}

/// The sessions of this process. Counted, because a connection that went back to its pool and out
/// again is briefly two sessions of one id.
fn alive() -> MutexGuard<'static, HashMap<SessionId, usize>> {
    static ALIVE: LazyLock<Mutex<HashMap<SessionId, usize>>> = LazyLock::new(Mutex::default);
    // Counts are changed in one step, so a panic elsewhere has left nothing half-done.
    ALIVE.lock().unwrap_or_else(PoisonError::into_inner)
}
