use std::{pin::pin, sync::Arc, time::Duration};

use advisory_core::{
    Error, Holder, LockKey, LockMode, Pooling, Report, Result, Role, Severity,
    spi::{LockBackend, LockSession, SessionId},
};
use async_trait::async_trait;
use futures::future::{Either, select};
use futures_timer::Delay;

use crate::{pool::Pool, server::Server, session::MemorySession};

/// A lock server inside the process, for tests.
///
/// A clone is another client of the same server: what one of them locks, the others find locked,
/// and what is seen of the server and done to it is the same from all of them. So a test can hand
/// a clone to the [`LockManager`](advisory_core::LockManager) of each replica it plays, and keep
/// one for itself. Sessions are a client's own, and so are [`close`](LockBackend::close) and the
/// limit to their number. [`new`](Self::new) makes another server.
///
/// # Examples
///
/// ```
/// use advisory_backend_memory::MemoryBackend;
/// use advisory_core::LockManager;
///
/// # futures::executor::block_on(async {
/// let server = MemoryBackend::new();
/// let locks = LockManager::new(server.clone());
///
/// let digest = locks.named("digest");
/// digest
///     .with(async || assert_eq!(server.holders(digest.key()).len(), 1))
///     .await?;
/// assert!(server.held().is_empty());
/// # Ok::<(), advisory_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryBackend {
    pub(crate) server: Arc<Server>,
    pool: Pool,
}

/// A session that waits for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiter {
    /// The session.
    pub session: SessionId,
    /// The mode it wants the lock in.
    pub mode: LockMode,
}

impl MemoryBackend {
    /// A server on which nothing is locked, and which shares nothing with any other.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lends at most `max` sessions at a time, as a pool of connections does.
    ///
    /// Who asks for one more waits in line, for up to half a minute or
    /// [the time it is given](Self::with_checkout_timeout), and then gets
    /// [`Error::PoolExhausted`]. The limit is this backend's; a clone of it has one of its own, of
    /// the same size.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use advisory_backend_memory::MemoryBackend;
    /// # use advisory_core::{Error, LockManager};
    /// # futures::executor::block_on(async {
    /// let backend = MemoryBackend::new()
    ///     .with_max_sessions(1)
    ///     .with_checkout_timeout(Duration::from_millis(20));
    /// let locks = LockManager::new(backend);
    ///
    /// let guard = locks.named("digest").lock().await?;
    /// let other = locks.named("other").try_lock().await;
    /// assert!(matches!(other, Err(Error::PoolExhausted { .. })));
    ///
    /// guard.release().await?;
    /// assert!(locks.named("other").try_lock().await?.is_some());
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn with_max_sessions(mut self, max: usize) -> Self {
        self.pool = self.pool.with_max_sessions(max);
        self
    }

    /// How long to wait for one of the [sessions](Self::with_max_sessions) to come free.
    ///
    /// # Examples
    ///
    /// See [`with_max_sessions`](Self::with_max_sessions).
    #[must_use]
    pub fn with_checkout_timeout(mut self, timeout: Duration) -> Self {
        self.pool = self.pool.with_checkout_timeout(timeout);
        self
    }

    /// Who holds the key, exclusive holders first.
    ///
    /// A session that holds it in both modes is listed twice.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_backend_memory::MemoryBackend;
    /// # use advisory_core::{LockManager, LockMode};
    /// # futures::executor::block_on(async {
    /// # let server = MemoryBackend::new();
    /// # let locks = LockManager::new(server.clone());
    /// let guard = locks.named("digest").shared().lock().await?;
    ///
    /// let holders = server.holders(guard.key());
    /// assert_eq!(holders.len(), 1);
    /// assert_eq!(holders[0].mode, LockMode::Shared);
    /// # guard.release().await?;
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn holders(&self, key: impl Into<LockKey>) -> Vec<Holder> {
        let key = key.into();
        self.server.with(|state| state.holders(key))
    }

    /// Who waits for the key, in the order in which they will get it.
    ///
    /// A test that wants to be sure that something waits polls it, and then looks here; there is
    /// no need to sleep. The callers of one manager queue up before they come here.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_backend_memory::MemoryBackend;
    /// # use advisory_core::LockManager;
    /// # futures::executor::block_on(async {
    /// # let server = MemoryBackend::new();
    /// let digest = LockManager::new(server.clone()).named("digest");
    /// let guard = LockManager::new(server.clone()).named("digest").lock().await?;
    ///
    /// let mut second = Box::pin(digest.lock());
    /// assert!(futures::poll!(&mut second).is_pending());
    /// assert_eq!(server.waiters(guard.key()).len(), 1);
    ///
    /// drop(second);
    /// assert!(server.waiters(guard.key()).is_empty());
    /// # guard.release().await?;
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn waiters(&self, key: impl Into<LockKey>) -> Vec<Waiter> {
        let key = key.into();
        self.server.with(|state| {
            let waiters = state.locks.waiters(key);
            waiters
                .map(|(session, mode)| Waiter { session, mode })
                .collect()
        })
    }

    /// Everything that is held, by key.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_backend_memory::MemoryBackend;
    /// # use advisory_core::LockManager;
    /// # futures::executor::block_on(async {
    /// # let server = MemoryBackend::new();
    /// # let locks = LockManager::new(server.clone());
    /// let guard = locks.named("digest").lock().await?;
    /// let keys: Vec<_> = server.held().iter().map(|holder| holder.key).collect();
    /// assert_eq!(keys, [guard.key()]);
    /// # guard.release().await?;
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn held(&self) -> Vec<Holder> {
        self.server.with(|state| {
            let held = state.locks.held();
            held.map(|(session, claim)| state.holder(session, claim))
                .collect()
        })
    }

    /// The sessions that are open, of all clients, oldest first.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_backend_memory::MemoryBackend;
    /// # use advisory_core::LockManager;
    /// # futures::executor::block_on(async {
    /// # let server = MemoryBackend::new();
    /// # let locks = LockManager::new(server.clone());
    /// // What is nested in a section uses its session.
    /// locks.named("outer").with(async || {
    ///     locks.named("inner").with(async || assert_eq!(server.sessions().len(), 1)).await
    /// }).await??;
    /// assert!(server.sessions().is_empty());
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionId> {
        self.server.with(|state| state.sessions().collect())
    }
}

#[async_trait]
impl LockBackend for MemoryBackend {
    async fn open(&self) -> Result<Box<dyn LockSession>> {
        let opened = self.server.open(&self.pool);
        // The timer is made once it is needed, which it seldom is.
        let checkout = async { Delay::new(self.pool.checkout_timeout()).await };
        let id = match select(pin!(opened), pin!(checkout)).await {
            Either::Left((opened, _)) => opened?,
            Either::Right(((), _)) => return Err(Error::pool_exhausted("no session became free")),
        };
        Ok(Box::new(MemorySession::new(Arc::clone(&self.server), id)))
    }

    async fn close(&self) -> Result<()> {
        self.pool.close();
        self.server.with(|state| state.wakers.wake_all());
        Ok(())
    }

    async fn check(&self) -> Result<Report> {
        let mut report = Report::new("inside this process, in memory");
        report.role = Some(Role::Primary);
        report.pooling = Some(Pooling::Session);
        report.add_finding(
            Severity::Warning,
            "its locks exclude nobody outside this process",
        );
        Ok(report)
    }
}
