use std::{fmt, future::Future, sync::Arc, time::Duration};

use crate::{
    Error, Lock, LockGuard, Result, Section, batch, context::Frame, owner::Owner,
    patience::Patience, spi::SessionId,
};

/// An owner of locks that you can hold in your hand: many locks on one connection.
///
/// Comes from [`LockManager::session`](crate::LockManager::session), or from
/// [`Session::current`] inside a section. All locks taken on one session have one owner: they
/// never exclude each other, a key that the session holds is entered again at no cost, and the
/// server can find deadlocks between sessions.
///
/// Clones are handles of the same session. Each guard is independent of the others and of the
/// handles; the connection goes back to its pool when the last of them is released.
///
/// # Dropping
///
/// If the last to go is dropped, not [released](Self::release), the connection is closed.
///
/// # Examples
///
/// ```
/// # use advisory_core::LockManager;
/// # use advisory_backend_memory::MemoryBackend;
/// # futures::executor::block_on(async {
/// # let locks = LockManager::new(MemoryBackend::new());
/// let session = locks.session().await?;
/// let orders = session.lock(&locks.named("shard:orders")).await?;
/// let stock = session.lock(&locks.named("shard:stock")).await?;
///
/// orders.release().await?;
/// stock.release().await?;
/// session.release().await?;
/// # Ok::<(), advisory_core::Error>(())
/// # }).unwrap();
/// ```
#[must_use = "a session that is dropped closes its connection"]
#[derive(Clone)]
pub struct Session {
    owner: Arc<Owner>,
    /// What is taken by hand belongs to this frame, and scopes are part of it.
    frame: Arc<Frame>,
}

impl Session {
    pub(crate) fn new(owner: Arc<Owner>, frame: Arc<Frame>) -> Self {
        Self { owner, frame }
    }

    /// The session of the innermost section or scope around the calling code, of whatever manager.
    ///
    /// Hand it to a task that the section spawns, and the task's [`scope`](Self::scope) is part of
    /// the section: it re-enters what the section holds, instead of waiting for it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::{LockManager, Session};
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// assert!(Session::current().is_none());
    /// locks.named("db:migrate").with(async || assert!(Session::current().is_some())).await?;
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn current() -> Option<Self> {
        Frame::current_of_any().map(|(frame, owner)| Self { owner, frame })
    }

    /// Who this session is to the server; `None` until it has answered for the first time.
    ///
    /// A backend that keeps a server session only while something is held on it, as PostgreSQL's in
    /// pinned mode do, has `None` in between, and may have another one after that.
    #[must_use]
    pub fn id(&self) -> Option<SessionId> {
        self.owner.vitals().id()
    }

    /// Whether the session is known to have ended, and with it all of its locks. No I/O: it
    /// reports what the last statement has found, or the driver has noticed.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.owner.check().is_err()
    }

    /// Ends when the session is lost, and with it all of its locks; see [`LockGuard::lost`].
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called anew at any time.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::{Error, LockManager};
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let server = MemoryBackend::new();
    /// # let locks = LockManager::new(server.clone());
    /// let session = locks.session().await?;
    /// let lost = session.lost();
    ///
    /// server.kill(session.id().expect("it has answered"));
    /// assert!(matches!(lost.await, Error::Lost { .. }));
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn lost(&self) -> impl Future<Output = Error> + Send + 'static + use<> {
        self.owner.lost()
    }

    /// Runs a future as a section of this session: calls on the same manager inside it use this
    /// session, and re-enter what it holds.
    ///
    /// This is also how a spawned task is made part of the section that spawned it. The session
    /// takes one statement at a time, so tasks that share it take turns.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the session is lost; the future is dropped as soon as that is seen.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the future. The session and its locks are not touched.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::LockManager;
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// let session = locks.session().await?;
    /// let guard = session.lock(&locks.named("db:migrate")).await?;
    ///
    /// // Would wait for itself outside of the scope.
    /// session.scope(locks.named("db:migrate").with(async || { /* … */ })).await??;
    /// # guard.release().await?;
    /// # session.release().await?;
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn scope<F: Future>(&self, future: F) -> Result<F::Output> {
        let parent = Some(Arc::clone(&self.frame));
        let frame = Frame::open(self.frame.manager(), Arc::downgrade(&self.owner), parent);
        let value = self.owner.while_alive(frame.run(future)).await;
        let value = value.map_err(|lost| lost.in_section(Section::Stopped))?;
        let alive = self.owner.check();
        alive.map_err(|lost| lost.in_section(Section::Completed))?;
        Ok(value)
    }

    /// Waits for the lock, on this session.
    ///
    /// # Errors
    ///
    /// As [`Lock::lock`]; [`Error::Lost`] if the session is gone, and [`Error::ForeignLock`] if
    /// the lock belongs to another manager.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no lock behind, and does not touch what the session holds. A
    /// wait that is under way on the server ends within one slice.
    pub async fn lock(&self, lock: &Lock) -> Result<LockGuard> {
        let guard = self.acquire(lock, Patience::unlimited()).await?;
        guard.ok_or_else(Error::no_miss)
    }

    /// Takes the lock on this session if it is free; `None` if it is not.
    ///
    /// # Errors
    ///
    /// As [`Lock::try_lock`]; [`Error::Lost`] and [`Error::ForeignLock`] as [`lock`](Self::lock).
    ///
    /// # Cancel safety
    ///
    /// As [`lock`](Self::lock).
    pub async fn try_lock(&self, lock: &Lock) -> Result<Option<LockGuard>> {
        self.acquire(lock, Patience::none()).await
    }

    /// As [`lock`](Self::lock), for a caller whose patience ends after `timeout`.
    ///
    /// # Errors
    ///
    /// As [`lock`](Self::lock), and [`Error::Timeout`].
    ///
    /// # Cancel safety
    ///
    /// As [`lock`](Self::lock).
    pub async fn lock_timeout(&self, lock: &Lock, timeout: Duration) -> Result<LockGuard> {
        let guard = self.acquire(lock, Patience::timeout(timeout)).await?;
        guard.ok_or_else(Error::no_miss)
    }

    /// Tries each of the locks, in one round trip: a guard in the place of each that was free, `None`
    /// in that of each that somebody else holds.
    ///
    /// A batch sends one statement for each mode and kind of key in it. A lock that is listed twice
    /// is entered again.
    ///
    /// # Errors
    ///
    /// As [`try_lock`](Self::try_lock), and [`Error::LockTableFull`] where the server has no memory
    /// for all of them. None is held then.
    ///
    /// # Cancel safety
    ///
    /// As [`lock`](Self::lock).
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::{LockGuard, LockManager};
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// let session = locks.session().await?;
    /// let shards: Vec<_> = (0..100).map(|shard| locks.named(format!("shard:{shard}"))).collect();
    ///
    /// let tried = session.try_lock_each(&shards).await?;
    /// let mine: Vec<LockGuard> = tried.into_iter().flatten().collect();
    /// assert_eq!(mine.len(), 100);
    ///
    /// LockGuard::release_all(mine).await?;
    /// session.release().await?;
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn try_lock_each(&self, locks: &[Lock]) -> Result<Vec<Option<LockGuard>>> {
        batch::try_each(&self.owner, &self.frame, locks).await
    }

    /// Waits for all of the locks: all are held in the end, or none.
    ///
    /// They are taken in the order of their keys, whatever their order in the list, so callers that
    /// do no more than this never wait for each other. A session that holds other locks already is
    /// not free of deadlocks; the server finds them. The guards are in the order of the list.
    ///
    /// # Errors
    ///
    /// As [`lock`](Self::lock), and [`Error::LockTableFull`]. None of the locks is held then.
    ///
    /// # Cancel safety
    ///
    /// As [`lock`](Self::lock).
    ///
    /// # Examples
    ///
    /// See [`LockManager::lock_all`](crate::LockManager::lock_all).
    pub async fn lock_all(&self, locks: &[Lock]) -> Result<Vec<LockGuard>> {
        batch::lock_all(&self.owner, &self.frame, locks, Patience::unlimited()).await
    }

    /// As [`lock_all`](Self::lock_all), for a caller whose patience ends after `timeout`.
    ///
    /// # Errors
    ///
    /// As [`lock_all`](Self::lock_all), and [`Error::Timeout`].
    ///
    /// # Cancel safety
    ///
    /// As [`lock`](Self::lock).
    pub async fn lock_all_timeout(
        &self,
        locks: &[Lock],
        timeout: Duration,
    ) -> Result<Vec<LockGuard>> {
        batch::lock_all(&self.owner, &self.frame, locks, Patience::timeout(timeout)).await
    }

    /// Gives up this handle. The connection goes back to its pool as soon as no other handle,
    /// guard or section is left on the session.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the session is known to be gone.
    ///
    /// # Cancel safety
    ///
    /// The handle is given up in any case; if it was the last one, the connection is closed.
    pub async fn release(self) -> Result<()> {
        self.owner.check()?;
        Owner::leave(self.owner).await;
        Ok(())
    }

    async fn acquire(&self, lock: &Lock, patience: Patience) -> Result<Option<LockGuard>> {
        let claim = lock.claim_of(&self.frame)?;
        lock.guarded(self.owner.acquire(claim, &self.frame, patience).await)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}
