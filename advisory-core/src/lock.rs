mod acquire;

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    Error, Holder, LockGuard, LockKey, LockLabel, LockMode, Result,
    context::{Frame, ManagerId},
    manager::Shared,
    owner::{Hold, Owner},
    patience::Patience,
    spi::Claim,
};

/// A lock: a key with its options. A value; nothing happens until one of its methods is awaited.
///
/// Cheap to clone, and may be used by any number of tasks at once: each use is an acquisition of
/// its own.
///
/// # Which one to use
///
/// | you want | use |
/// |---|---|
/// | one replica to run it, the others to skip | [`try_with`](Self::try_with) |
/// | everybody to run it, one after the other | [`with`](Self::with), [`with_timeout`](Self::with_timeout) |
/// | the lock beyond one function | [`lock`](Self::lock), [`try_lock`](Self::try_lock), [`lock_timeout`](Self::lock_timeout) |
///
/// `with` is no run-once primitive: every waiter gets its turn. `try_with` skips only while the
/// lock is held: a replica that comes after the release runs the section again.
///
/// # Examples
///
/// ```
/// # use advisory_core::LockManager;
/// # use advisory_backend_memory::MemoryBackend;
/// # futures::executor::block_on(async {
/// # let locks = LockManager::new(MemoryBackend::new());
/// let migrate = locks.named("db:migrate");
///
/// let tables = migrate.with(async || { /* create them … */ 3 }).await?;
/// assert_eq!(tables, 3);
/// # Ok::<(), advisory_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Lock {
    shared: Arc<Shared>,
    label: LockLabel,
    mode: LockMode,
    on_loss: OnLoss,
}

/// What becomes of a section whose lock is lost while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// Its future is dropped as soon as the loss is seen.
    #[default]
    Stop,
    /// It runs to its end, and then the loss is reported.
    Continue,
}

impl Lock {
    pub(crate) fn new(shared: Arc<Shared>, name: Option<&str>, key: LockKey) -> Self {
        let name = name.map(Arc::from);
        Self {
            shared,
            label: LockLabel { name, key },
            mode: LockMode::default(),
            on_loss: OnLoss::default(),
        }
    }

    /// The same lock in shared mode: any number of holders, but none while somebody holds it
    /// exclusively.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.mode = LockMode::Shared;
        self
    }

    /// What to do with a section when its lock is lost; by default it is stopped.
    ///
    /// Stopping means that its future is dropped: it ends where it awaits something. Code that
    /// blocks, and tasks that it has spawned, run on.
    ///
    /// The section's own task does the watching, so a section that blocks is not watched either. A
    /// closed connection is seen within a second, a silent network within ten, unless the manager's
    /// [`Options`](crate::Options) say otherwise. In a section of less than half a second nothing is
    /// sent for that; in a longer one an empty statement now and then, where the driver does not
    /// listen by itself or nothing was heard for long.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::{LockManager, OnLoss};
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// // Two at once do no harm, half of one does.
    /// let migrate = locks.named("db:migrate").on_loss(OnLoss::Continue);
    /// migrate.with(async || { /* … */ }).await?;
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn on_loss(mut self, on_loss: OnLoss) -> Self {
        self.on_loss = on_loss;
        self
    }

    fn manager(&self) -> ManagerId {
        self.shared.id
    }

    pub(crate) fn claim(&self) -> Claim {
        Claim {
            key: self.label.key,
            mode: self.mode,
        }
    }

    /// The claim on it of a frame, which has to be of the same manager.
    pub(crate) fn claim_of(&self, frame: &Frame) -> Result<Claim> {
        let ours = self.manager() == frame.manager();
        ours.then(|| self.claim()).ok_or(Error::ForeignLock)
    }

    pub(crate) fn guard(&self, hold: Hold) -> LockGuard {
        LockGuard::new(hold, self.label.clone())
    }

    /// What an acquisition has come to, for one who wants a guard.
    pub(crate) fn guarded(&self, acquired: Result<Option<Hold>>) -> Result<Option<LockGuard>> {
        let hold = acquired.map_err(|error| error.about(&self.label))?;
        Ok(hold.map(|hold| self.guard(hold)))
    }

    pub(crate) fn label(&self) -> &LockLabel {
        &self.label
    }

    /// The key that the server sees.
    #[must_use]
    pub fn key(&self) -> LockKey {
        self.label.key
    }

    /// The mode that the lock is taken in: exclusive, unless [`shared`](Self::shared) was called.
    #[must_use]
    pub fn mode(&self) -> LockMode {
        self.mode
    }

    /// Waits for the lock, runs the section, and frees the lock.
    ///
    /// The lock is freed whether the section returns, fails or panics: an `Err` of the section's
    /// own is a value like any other and comes back inside the `Ok`. There is no limit to the
    /// wait; see [`with_timeout`](Self::with_timeout).
    ///
    /// Inside the section, calls on the same manager from the same task reuse its connection, and
    /// what the section already holds is re-entered at no cost. Tasks that the section spawns are
    /// strangers: they contend like everybody else.
    ///
    /// If the lock is lost the section is stopped; see [`on_loss`](Self::on_loss).
    ///
    /// Code that is generic over the section and spawns it cannot ask for an `AsyncFnOnce`, for
    /// there is no bound yet that makes its future `Send`. It takes a function that returns a future
    /// instead, as the last example does.
    ///
    /// # Errors
    ///
    /// - [`Error::Closed`] after [`LockManager::close`](crate::LockManager::close).
    /// - [`Error::PoolExhausted`] if the backend's or the pool's own limit ends before a connection is
    ///   free.
    /// - [`Error::Deadlock`] if an owner of a lock that this one waits for waits for this one.
    /// - [`Error::Lost`] if the lock was lost while the section ran. The section is dropped as soon
    ///   as that is seen ([`on_loss`](Self::on_loss)); if that is at its end, its value is dropped:
    ///   what it did may have overlapped with somebody else's section.
    /// - [`Error::NotPrimary`], [`Error::SessionNotPinned`], [`Error::Unsupported`],
    ///   [`Error::LockTableFull`], [`Error::Backend`]: the section did not run; or, for the last
    ///   one only, it ran, and the release failed and closed the connection.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future while it waits leaves no lock behind; a wait that is under way on the
    /// server ends with its slice: 0.4 s with default settings of the server, 1.5 s for an owner
    /// that holds other locks, up to 30 s for a writer that waits behind readers. Dropping it while
    /// the section runs drops the section, and frees the lock, as a rule by closing its connection.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::LockManager;
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// let mut balance = 10;
    /// locks.named("account:7").with(async || balance += 5).await?;
    /// assert_eq!(balance, 15);
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// A section that can fail has a result inside the lock's; if it uses `?`, it has to say what
    /// its error is:
    ///
    /// ```
    /// # use std::num::ParseIntError;
    /// # use advisory_core::LockManager;
    /// # use advisory_backend_memory::MemoryBackend;
    /// # async fn read() -> &'static str { "15" }
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// let balance = locks.named("account:7").with(async || {
    ///     let balance: u32 = read().await.parse()?;
    ///     Ok::<_, ParseIntError>(balance + 5)
    /// }).await??;
    /// assert_eq!(balance, 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// A section that is spawned, whatever it is:
    ///
    /// ```
    /// # use std::future::Future;
    /// # use advisory_core::{Lock, LockManager};
    /// # use advisory_backend_memory::MemoryBackend;
    /// # fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    /// #     std::thread::spawn(|| futures::executor::block_on(future)).join().unwrap();
    /// # }
    /// fn in_background<F, Fut>(lock: Lock, section: F)
    /// where
    ///     F: FnOnce() -> Fut + Send + 'static,
    ///     Fut: Future<Output: Send> + Send + 'static,
    /// {
    ///     spawn(async move {
    ///         if let Err(error) = lock.with(async move || section().await).await {
    ///             eprintln!("{error}");
    ///         }
    ///     });
    /// }
    ///
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// in_background(locks.named("account:7"), async || { /* … */ });
    /// ```
    pub async fn with<T>(&self, section: impl AsyncFnOnce() -> T) -> Result<T> {
        let (hold, frame) = self.enter_surely(Patience::unlimited()).await?;
        self.run(hold, frame, async |_| section().await).await
    }

    /// Runs the section if the lock is free, and returns `None` without waiting if it is not.
    ///
    /// Never waits for the lock, though it may wait for a connection of the pool; if there is none
    /// within the pool's own limit that is [`Error::PoolExhausted`], never `None`.
    ///
    /// # Errors
    ///
    /// As [`with`](Self::with), but never [`Error::Deadlock`].
    ///
    /// # Cancel safety
    ///
    /// As [`with`](Self::with).
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::LockManager;
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// match locks.named("nightly-cleanup").try_with(async || 17).await? {
    ///     Some(rows) => println!("swept {rows} rows"),
    ///     None => println!("another replica is at it"),
    /// }
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// Of a section that can fail, `transpose` gets the two results apart:
    ///
    /// ```
    /// # use advisory_core::LockManager;
    /// # use advisory_backend_memory::MemoryBackend;
    /// # async fn sweep() -> std::io::Result<u32> { Ok(17) }
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// let rows = locks.named("nightly-cleanup").try_with(async || sweep().await).await?.transpose()?;
    /// assert_eq!(rows, Some(17));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub async fn try_with<T>(&self, section: impl AsyncFnOnce() -> T) -> Result<Option<T>> {
        match self.enter(Patience::none()).await? {
            Some((hold, frame)) => self
                .run(hold, frame, async |_| section().await)
                .await
                .map(Some),
            None => Ok(None),
        }
    }

    /// As [`with`](Self::with), for a caller whose patience ends after `timeout`.
    ///
    /// The timeout bounds all that comes before the section: the wait for a connection, for the
    /// lock, and for a server that has stopped answering, for which one second of grace is added.
    /// It does not bound the section. Zero means one try. Any duration is allowed; beyond ten
    /// years there is no limit.
    ///
    /// # Errors
    ///
    /// As [`with`](Self::with), and [`Error::Timeout`], which names the holders where they can be
    /// found out.
    ///
    /// # Cancel safety
    ///
    /// As [`with`](Self::with).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use advisory_core::{Error, LockManager};
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// let guard = locks.named("db:migrate").lock().await?;
    ///
    /// let late = locks.named("db:migrate").with_timeout(Duration::ZERO, async || ()).await;
    /// assert!(matches!(late, Err(Error::Timeout { .. })));
    /// # guard.release().await?;
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn with_timeout<T>(
        &self,
        timeout: Duration,
        section: impl AsyncFnOnce() -> T,
    ) -> Result<T> {
        let (hold, frame) = self.enter_surely(Patience::timeout(timeout)).await?;
        self.run(hold, frame, async |_| section().await).await
    }

    /// As [`with`](Self::with), with a section that sees the guard of its lock.
    ///
    /// # Errors
    ///
    /// As [`with`](Self::with).
    ///
    /// # Cancel safety
    ///
    /// As [`with`](Self::with).
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::LockManager;
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// # let shards = [1, 2];
    /// locks.named("search:index").with_guard(async |guard| {
    ///     for shard in shards {
    ///         if guard.is_lost() {
    ///             break;
    ///         }
    ///         // … rebuild it …
    ///         # let _ = shard;
    ///     }
    /// }).await?;
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn with_guard<T>(&self, section: impl AsyncFnOnce(&LockGuard) -> T) -> Result<T> {
        let (hold, frame) = self.enter_surely(Patience::unlimited()).await?;
        self.run(hold, frame, section).await
    }

    /// Waits for the lock and returns the proof that it is held.
    ///
    /// A guard opens no context. Inside a section it belongs to the section: it uses its session,
    /// and the section enters the key again at no cost. Outside of one each guard is an owner of
    /// its own: a task that holds one and asks for the same key again waits for itself, and a cycle
    /// through two of them is seen by nobody; such waits end by a timeout only. Take several locks
    /// on a [`Session`](crate::Session), or in sections, and the server finds the cycle.
    ///
    /// # Errors
    ///
    /// As [`with`](Self::with), but never [`Error::Lost`].
    ///
    /// # Cancel safety
    ///
    /// As [`with`](Self::with).
    ///
    /// # Examples
    ///
    /// See [`LockGuard`].
    pub async fn lock(&self) -> Result<LockGuard> {
        self.acquire(Patience::unlimited())
            .await?
            .ok_or_else(Error::no_miss)
    }

    /// Takes the lock if it is free; `None` if it is not.
    ///
    /// The lock is held as long as the guard is, so give it a name that lives: `_guard`, not `_`. The
    /// statement `lock.try_lock().await?;` takes the lock and frees it at once.
    ///
    /// # Errors
    ///
    /// As [`try_with`](Self::try_with), but never [`Error::Lost`].
    ///
    /// # Cancel safety
    ///
    /// As [`with`](Self::with).
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::LockManager;
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// if let Some(_guard) = locks.named("imports:run").try_lock().await? {
    ///     // Held up to the end of this block.
    ///     assert!(locks.named("imports:run").try_lock().await?.is_none());
    /// }
    ///
    /// locks.named("imports:run").try_lock().await?;
    /// assert!(locks.named("imports:run").holders().await?.is_empty());
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn try_lock(&self) -> Result<Option<LockGuard>> {
        self.acquire(Patience::none()).await
    }

    /// As [`lock`](Self::lock), for a caller whose patience ends after `timeout`; see
    /// [`with_timeout`](Self::with_timeout) for what that bounds.
    ///
    /// # Errors
    ///
    /// As [`with_timeout`](Self::with_timeout), but never [`Error::Lost`].
    ///
    /// # Cancel safety
    ///
    /// As [`with`](Self::with).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use advisory_core::LockManager;
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// let guard = locks.named("db:migrate").lock_timeout(Duration::from_secs(30)).await?;
    /// guard.release().await?;
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn lock_timeout(&self, timeout: Duration) -> Result<LockGuard> {
        self.acquire(Patience::timeout(timeout))
            .await?
            .ok_or_else(Error::no_miss)
    }

    /// Who holds the lock right now, in any mode, as far as this manager's role may see.
    ///
    /// For people who want to know what a waiter waits for. Do not base a decision on it: it may
    /// be out of date before it arrives.
    ///
    /// # Errors
    ///
    /// As [`try_lock`](Self::try_lock), as far as they concern the connection.
    ///
    /// # Cancel safety
    ///
    /// As [`try_lock`](Self::try_lock).
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::LockManager;
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// let guard = locks.named("imports:run").lock().await?;
    /// for holder in locks.named("imports:run").holders().await? {
    ///     println!("held by {holder}");
    ///     assert!(holder.this_process);
    /// }
    /// # guard.release().await?;
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn holders(&self) -> Result<Vec<Holder>> {
        let owner = match Frame::current(self.shared.id) {
            Some((_, owner)) => owner,
            None => Owner::open(self.shared.admit()?, Patience::unlimited()).await?,
        };
        let holders = owner.holders(self.key()).await;
        Owner::leave(owner).await;
        holders
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock")
            .field("name", &self.label.name)
            .field("key", &self.label.key)
            .field("mode", &self.mode)
            .field("on_loss", &self.on_loss)
            .finish_non_exhaustive()
    }
}
