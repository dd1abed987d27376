use crate::{LockKey, LockMode, Result, owner::Hold};

/// A lock that is held, until the guard is released or dropped.
///
/// Comes from [`Lock::lock`](crate::Lock::lock), [`Lock::try_lock`](crate::Lock::try_lock) and
/// [`Lock::lock_timeout`](crate::Lock::lock_timeout). It is `'static`, so it can be kept in a
/// struct or sent to another task.
///
/// # Dropping
///
/// Prefer [`release`](Self::release): it gives the connection back to its pool, and reports a
/// lock that was lost on the way. A drop does its best without a runtime, without blocking and
/// without panicking: where the lock was alone on its session, the session's connection is
/// closed, and the server frees the lock when it sees that, normally within milliseconds. Where
/// other locks live on the session, the unlock is sent, or left to whoever is using the session,
/// and they stay untouched.
#[must_use = "the lock is freed as soon as the guard is dropped"]
#[clippy::has_significant_drop]
#[derive(Debug)]
pub struct LockGuard {
    hold: Hold,
}

impl LockGuard {
    pub(crate) fn new(hold: Hold) -> Self {
        Self { hold }
    }

    /// The key that is held.
    #[must_use]
    pub fn key(&self) -> LockKey {
        self.hold.claim().key
    }

    /// The mode it is held in.
    #[must_use]
    pub fn mode(&self) -> LockMode {
        self.hold.claim().mode
    }

    /// Whether the lock is known to be lost. No I/O: it reports what the last statement on its
    /// session has found, or the driver has noticed.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.hold.is_lost()
    }

    /// Frees the lock and gives the connection back to its pool.
    ///
    /// One round trip, in which the server says whether the lock was still there.
    ///
    /// # Errors
    ///
    /// - [`Error::Lost`](crate::Error::Lost): the session had ended, or somebody else had freed
    ///   the lock, so it may have been held by others before this call.
    /// - [`Error::Backend`](crate::Error::Backend): the release failed. The connection has been
    ///   closed, which frees the lock as well.
    ///
    /// # Cancel safety
    ///
    /// Once the future has been polled the lock is freed, whether or not it is polled again.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::LockManager;
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// let guard = locks.named("imports:run").lock().await?;
    /// // … work that needs the lock …
    /// guard.release().await?;
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn release(self) -> Result<()> {
        self.hold.release().await
    }
}
