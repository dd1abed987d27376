//! What a test can do to the server.

use advisory_core::{Error, spi::SessionId};

use crate::MemoryBackend;

impl MemoryBackend {
    /// Ends a session from outside, as a broken connection does; `false` if there is none such.
    ///
    /// Its locks are free at once, and go to those who wait for them. Its owner finds out with the
    /// next call, or the one under way, which fails.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_backend_memory::MemoryBackend;
    /// # use advisory_core::{Error, LockManager};
    /// # futures::executor::block_on(async {
    /// # let server = MemoryBackend::new();
    /// # let locks = LockManager::new(server.clone());
    /// let guard = locks.named("imports:run").lock().await?;
    ///
    /// let holder = server.holders(guard.key())[0].session;
    /// assert!(server.kill(holder));
    /// assert!(!server.kill(holder));
    ///
    /// assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn kill(&self, session: SessionId) -> bool {
        self.server.with(|state| {
            if !state.is_alive(session) {
                return false;
            }
            state.wakers.wake(session);
            state.end(session)
        })
    }

    /// Stops answering: every call, one that is under way included, is pending until
    /// [`resume`](Self::resume), whatever its timeout.
    ///
    /// The connections stay open, so that no owner notices. Whoever drops a session is still rid
    /// of it at once, and whoever asks for one still waits no longer than the
    /// [checkout timeout](Self::with_checkout_timeout).
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_backend_memory::MemoryBackend;
    /// # use advisory_core::LockManager;
    /// # futures::executor::block_on(async {
    /// # let server = MemoryBackend::new();
    /// # let locks = LockManager::new(server.clone());
    /// let digest = locks.named("digest");
    /// server.stall();
    /// let mut lock = Box::pin(digest.lock());
    /// assert!(futures::poll!(&mut lock).is_pending());
    ///
    /// server.resume();
    /// lock.await?.release().await?;
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn stall(&self) {
        self.server.with(|state| state.stalled = true);
    }

    /// Answers again, also what was asked in the meantime.
    ///
    /// # Examples
    ///
    /// See [`stall`](Self::stall).
    pub fn resume(&self) {
        self.server.with(|state| {
            state.stalled = false;
            state.wakers.wake_all();
        });
    }

    /// Refuses every new session with this error, until [`accept_sessions`](Self::accept_sessions).
    /// Sessions that are open go on.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_backend_memory::MemoryBackend;
    /// # use advisory_core::{Error, LockManager};
    /// # futures::executor::block_on(async {
    /// # let server = MemoryBackend::new();
    /// # let locks = LockManager::new(server.clone());
    /// server.refuse_sessions(Error::backend("connection refused"));
    /// let refused = locks.named("digest").try_lock().await;
    /// assert!(matches!(refused, Err(Error::Backend(_))));
    ///
    /// server.refuse_sessions(Error::NotPrimary);
    /// let refused = locks.named("digest").try_lock().await;
    /// assert!(matches!(refused, Err(Error::NotPrimary)));
    ///
    /// server.accept_sessions();
    /// assert!(locks.named("digest").try_lock().await?.is_some());
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn refuse_sessions(&self, error: Error) {
        // Returned, so that the error it replaces is dropped outside the lock.
        self.server.with(|state| {
            state.wakers.wake_all();
            state.refusal.replace(error)
        });
    }

    /// Accepts new sessions again.
    ///
    /// # Examples
    ///
    /// See [`refuse_sessions`](Self::refuse_sessions).
    pub fn accept_sessions(&self) {
        self.server.with(|state| state.refusal.take());
    }
}
