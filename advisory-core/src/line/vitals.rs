use std::{
    mem,
    sync::{
        LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use foldhash::HashMap;

use crate::spi::SessionId;

/// What is known of a session without asking it, for those who only look.
#[derive(Debug)]
pub(crate) struct Vitals {
    id: Mutex<Option<SessionId>>,
    opened: Instant,
    /// When the session last answered, in milliseconds after it was opened.
    heard: AtomicU64,
    /// When the server last granted it a lock, in microseconds after it was opened.
    granted: AtomicU64,
    /// How often the session has passed from one owner of its locks to another.
    tenure: AtomicU64,
    lost: AtomicBool,
}

impl Vitals {
    pub(crate) fn new() -> Self {
        Self {
            id: Mutex::default(),
            opened: Instant::now(),
            heard: AtomicU64::new(0),
            granted: AtomicU64::new(0),
            tenure: AtomicU64::new(0),
            lost: AtomicBool::new(false),
        }
    }

    /// The session has answered, and this is who it is now.
    pub(crate) fn hear(&self, id: Option<SessionId>) {
        self.heard.store(self.age(), Ordering::Relaxed);
        self.identify(id);
    }

    fn identify(&self, id: Option<SessionId>) {
        // Replaced whole.
        let mut known = self.id.lock().unwrap_or_else(PoisonError::into_inner);
        let before = mem::replace(&mut *known, id);
        if before == id {
            return;
        }
        let mut alive = alive();
        if let Some(id) = id {
            *alive.entry(id).or_default() += 1;
        }
        if let Some(before) = before
            && let Some(count) = alive.get_mut(&before)
        {
            *count -= 1;
            if *count == 0 {
                alive.remove(&before);
            }
        }
    }

    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    pub(crate) fn id(&self) -> Option<SessionId> {
        *self.id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Whether the session was seen alive so recently that what it holds counts as held.
    pub(crate) fn is_trusted(&self, within: Duration) -> bool {
        !self.is_lost() && self.silent_for() < within
    }

    /// The server has granted a lock.
    pub(crate) fn grant(&self) {
        let age = self.opened.elapsed().as_micros();
        let age = u64::try_from(age).unwrap_or(u64::MAX);
        self.granted.store(age, Ordering::Relaxed);
    }

    /// How long ago the server last granted a lock.
    pub(crate) fn granted_for(&self) -> Duration {
        let granted = Duration::from_micros(self.granted.load(Ordering::Relaxed));
        self.opened.elapsed().saturating_sub(granted)
    }

    /// The session goes to another owner, whose losses are no business of the ones before.
    pub(crate) fn change_hands(&self) {
        self.tenure.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn tenure(&self) -> u64 {
        self.tenure.load(Ordering::Acquire)
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
        self.identify(None);
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
