use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::Poll,
    time::Duration,
};

use futures_timer::Delay;

use crate::{
    Error, Holder, Lock, LockBackend, LockGuard, LockKey, LockMode, Namespace, Options, Report,
    Result, Session, Sessions, Stage, batch,
    context::{Frame, ManagerId},
    key::KeySpace,
    ledger::Ledger,
    line::attend,
    news::News,
    owner::{Baton, Owner, Place, Queues},
    patience::Patience,
    sharing::SharedSessions,
    spi::Claim,
};

/// Hands out the locks of one backend.
///
/// Make one per backend and keep it: cloning is cheap, and all clones, and everything made from
/// them, are one manager. The backend's type is erased, so code that takes a manager does not care
/// which database driver there is, or whether there is one.
///
/// A manager starts no task, and opens no connection before the first lock is asked for. All managers
/// of a process share two threads, each started when it is first needed: one for timers, and one that
/// finishes what a dropped guard or a cancelled call has left behind on a session that lives on.
///
/// # Dropping
///
/// Dropping the last handle without [`close`](Self::close) does not block. Guards and sections
/// that live on stay valid; a pool that the backend owns is freed with the last of them.
///
/// # Examples
///
/// ```
/// # use advisory_core::LockManager;
/// # use advisory_backend_memory::MemoryBackend;
/// # futures::executor::block_on(async {
/// let locks = LockManager::new(MemoryBackend::new());
///
/// let guard = locks.named("imports:run").try_lock().await?.expect("nobody else is there");
/// assert!(locks.named("imports:run").try_lock().await?.is_none());
/// guard.release().await?;
///
/// locks.close().await?;
/// # Ok::<(), advisory_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct LockManager {
    shared: Arc<Shared>,
}

impl LockManager {
    /// A manager of the locks that `backend` gives access to.
    #[must_use]
    pub fn new(backend: impl LockBackend) -> Self {
        Self::with_options(backend, Options::new())
    }

    /// As [`new`](Self::new), with other options than the defaults.
    #[must_use]
    pub fn with_options(backend: impl LockBackend, options: Options) -> Self {
        Self {
            shared: Arc::new(Shared {
                id: ManagerId::next(),
                backend: match options.sessions {
                    Sessions::Each => Box::new(backend),
                    Sessions::Shared => Box::new(SharedSessions::new(backend, options)),
                },
                options,
                ledger: Ledger::new(options.silent_within),
                queues: Arc::default(),
                lifecycle: Mutex::default(),
                vacated: News::default(),
            }),
        }
    }

    /// The lock called `name`. Nothing happens until it is used.
    ///
    /// The name becomes a 64-bit key by [`derive_key`](crate::derive_key). Any text will do; a
    /// name that says what is protected (`search:index`) helps whoever finds it in a log.
    #[must_use]
    pub fn named(&self, name: impl AsRef<str>) -> Lock {
        let name = name.as_ref();
        Lock::new(
            Arc::clone(&self.shared),
            Some(name),
            KeySpace::ROOT.key(name),
        )
    }

    /// The lock with this raw key, for meeting code that computes its keys in another way.
    ///
    /// Raw keys exist on the manager only, not in namespaces.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::{LockKey, LockManager};
    /// # use advisory_backend_memory::MemoryBackend;
    /// let locks = LockManager::new(MemoryBackend::new());
    ///
    /// assert_eq!(locks.keyed(42_i64).key(), LockKey::BigInt(42));
    /// assert_eq!(locks.keyed((7, 1)).key(), LockKey::Pair(7, 1));
    /// ```
    #[must_use]
    pub fn keyed(&self, key: impl Into<LockKey>) -> Lock {
        Lock::new(Arc::clone(&self.shared), None, key.into())
    }

    /// A derived key space, in which the same names make other locks.
    #[must_use]
    pub fn namespace(&self, namespace: impl AsRef<str>) -> Namespace {
        Namespace::new(
            Arc::clone(&self.shared),
            KeySpace::ROOT.enter(namespace.as_ref()),
        )
    }

    /// Opens a session, to take many locks on one connection.
    ///
    /// # Errors
    ///
    /// As [`Lock::lock`], as far as they concern the connection.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no connection checked out.
    ///
    /// # Examples
    ///
    /// See [`Session`].
    pub async fn session(&self) -> Result<Session> {
        let (frame, owner) = self.shared.open(Patience::unlimited()).await?;
        Ok(Session::new(owner, frame))
    }

    /// Tries each of the locks, in one round trip: a guard in the place of each that was free, `None`
    /// in that of each that somebody else holds.
    ///
    /// They all live on one connection, of the section around the call if there is one; see
    /// [`Session::try_lock_each`].
    ///
    /// # Errors
    ///
    /// As [`session`](Self::session) and [`Session::try_lock_each`]. None of the locks is held then.
    ///
    /// # Cancel safety
    ///
    /// As [`Lock::with`].
    pub async fn try_lock_each(&self, locks: &[Lock]) -> Result<Vec<Option<LockGuard>>> {
        let (frame, owner) = self.frame(Patience::none()).await?;
        let guards = batch::try_each(&owner, &frame, locks).await;
        Owner::leave(owner).await;
        guards
    }

    /// Waits for all of the locks: all are held in the end, or none.
    ///
    /// They all live on one connection, of the section around the call if there is one; see
    /// [`Session::lock_all`].
    ///
    /// # Errors
    ///
    /// As [`session`](Self::session) and [`Session::lock_all`]. None of the locks is held then.
    ///
    /// # Cancel safety
    ///
    /// As [`Lock::with`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::{LockGuard, LockManager};
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// let accounts = [locks.named("account:7"), locks.named("account:3")];
    ///
    /// // Whoever moves money the other way lists them the other way, and that is fine.
    /// let both = locks.lock_all(&accounts).await?;
    /// // …
    /// LockGuard::release_all(both).await?;
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn lock_all(&self, locks: &[Lock]) -> Result<Vec<LockGuard>> {
        self.lock_all_with(locks, Patience::unlimited()).await
    }

    /// As [`lock_all`](Self::lock_all), for a caller whose patience ends after `timeout`.
    ///
    /// # Errors
    ///
    /// As [`lock_all`](Self::lock_all), and [`Error::Timeout`].
    ///
    /// # Cancel safety
    ///
    /// As [`Lock::with`].
    pub async fn lock_all_timeout(
        &self,
        locks: &[Lock],
        timeout: Duration,
    ) -> Result<Vec<LockGuard>> {
        self.lock_all_with(locks, Patience::timeout(timeout)).await
    }

    /// Finds out what there is to know of the server, and whether its locks can be relied on: its
    /// version and role, what is between here and there, its limits, its timeouts.
    ///
    /// For a program's start, a health check, or a person at a terminal: the [`Report`] prints as a
    /// page. It opens connections of its own, and closes them; on PostgreSQL it holds a lock of a
    /// random key for a moment, to try it. Taking locks does not need it: what
    /// makes them unsafe is found out by the first of them, and refused.
    ///
    /// # Errors
    ///
    /// - [`Error::Closed`] after [`close`](Self::close).
    /// - [`Error::Backend`] or [`Error::Timeout`] if the server cannot be asked. That locks would not
    ///   exclude anybody is a finding of the report, and no error.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no connection open.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::LockManager;
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// let report = locks.check().await?;
    /// println!("{report}");
    /// assert!(report.is_fit());
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn check(&self) -> Result<Report> {
        let admission = self.shared.admit()?;
        admission.backend().check().await
    }

    /// Refuses new work, waits for all that is under way, and closes what the backend owns.
    ///
    /// From the first poll on, every new top-level acquisition, on any clone and anything made
    /// from one, fails with [`Error::Closed`]. Sections that are running go on, nested
    /// acquisitions inside them included. `close` waits for them, for waiters and for guards
    /// without limit, so a guard that somebody forgot blocks it.
    ///
    /// A pool that was handed to the backend stays open. Closing twice is fine.
    ///
    /// # Errors
    ///
    /// - [`Error::CloseInsideLock`] inside a section of this manager, for which it would wait
    ///   forever; the manager stays usable.
    /// - [`Error::Backend`] if the backend reports that something could not be closed.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped the manager stays closed for new work; call `close` again to wait
    /// for the rest.
    pub async fn close(&self) -> Result<()> {
        self.close_with(Patience::unlimited()).await
    }

    /// As [`close`](Self::close), for a caller whose patience ends after `timeout`.
    ///
    /// # Errors
    ///
    /// As [`close`](Self::close), and [`Error::Timeout`], which names what is still held. The
    /// manager then stays closed for new work, and what is under way goes on.
    ///
    /// # Cancel safety
    ///
    /// As [`close`](Self::close).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use advisory_core::{Error, LockManager};
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// let forgotten = locks.named("imports:run").lock().await?;
    ///
    /// let Err(Error::Timeout { holders, .. }) = locks.close_timeout(Duration::ZERO).await else {
    ///     panic!("there is a guard");
    /// };
    /// assert_eq!(holders[0].key, forgotten.key());
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn close_timeout(&self, timeout: Duration) -> Result<()> {
        self.close_with(Patience::timeout(timeout)).await
    }

    async fn lock_all_with(&self, locks: &[Lock], patience: Patience) -> Result<Vec<LockGuard>> {
        let (frame, owner) = self.frame(patience).await?;
        let guards = batch::lock_all(&owner, &frame, locks, patience).await;
        if !guards.as_ref().is_err_and(Error::is_unanswered) {
            Owner::leave(owner).await;
        }
        guards
    }

    /// The frame around the calling code, or else one of its own on a session of its own.
    async fn frame(&self, patience: Patience) -> Result<(Arc<Frame>, Arc<Owner>)> {
        match Frame::current(self.shared.id) {
            Some(current) => Ok(current),
            None => self.shared.open(patience).await,
        }
    }

    async fn close_with(&self, patience: Patience) -> Result<()> {
        if Frame::current(self.shared.id).is_some() {
            return Err(Error::CloseInsideLock);
        }
        self.shared.lifecycle().closed = true;
        self.shared.vacated(patience).await?;
        let limit = Patience::timeout(self.shared.options.answer_within);
        limit.bound_answer(self.shared.backend.close()).await
    }
}

impl fmt::Debug for LockManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockManager")
            .field("backend", &self.shared.backend)
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}

/// What all handles of one manager share.
pub(crate) struct Shared {
    pub(crate) id: ManagerId,
    backend: Box<dyn LockBackend>,
    options: Options,
    pub(crate) ledger: Ledger,
    /// Those who wait for a lock that somebody of this manager holds or is after.
    pub(crate) queues: Arc<Queues>,
    lifecycle: Mutex<Lifecycle>,
    /// Notified when the last admission ends.
    vacated: News,
}

#[derive(Debug, Default)]
struct Lifecycle {
    closed: bool,
    /// Top-level acquisitions that are under way or hold a session.
    admitted: usize,
}

impl Shared {
    /// Lets a top-level acquisition in.
    pub(crate) fn admit(self: &Arc<Self>) -> Result<Admission> {
        let mut lifecycle = self.lifecycle();
        if lifecycle.closed {
            return Err(Error::Closed);
        }
        lifecycle.admitted += 1;
        Ok(Admission {
            shared: Arc::clone(self),
        })
    }

    /// A session of its own, and a frame for what is taken on it.
    async fn open(self: &Arc<Self>, patience: Patience) -> Result<(Arc<Frame>, Arc<Owner>)> {
        let owner = Owner::open(self.admit()?, patience).await?;
        let frame = Frame::open(self.id, Arc::downgrade(&owner), None);
        Ok((frame, owner))
    }

    /// Waits until no top-level acquisition is left.
    async fn vacated(&self, patience: Patience) -> Result<()> {
        loop {
            let vacated = self.vacated.listen();
            if self.lifecycle().admitted == 0 {
                return Ok(());
            }
            let in_time = patience.bound_local(vacated, Stage::Close).await;
            in_time.map_err(|error| error.held_by(self.ledger.holders()))?;
        }
    }

    /// Waits for one's turn in the queue of a lock, and says who holds it if it does not come in
    /// time.
    pub(crate) async fn turn(
        self: &Arc<Self>,
        place: &Place,
        patience: Patience,
    ) -> Result<Option<Baton>> {
        if let Poll::Ready(baton) = place.come() {
            return Ok(baton);
        }
        if self.queues.wants_looks() {
            attend(look_after(Arc::downgrade(self)));
        }
        match patience.bound_turn(place.turn()).await {
            Ok(baton) => Ok(baton),
            Err(late) => Err(late.held_by(self.keepers(place).await)),
        }
    }

    /// Who keeps the leader of a queue from going on, as far as he can tell in a moment.
    async fn keepers(&self, place: &Place) -> Vec<Holder> {
        let key = *place.key();
        if let Some(leader) = place.witness().and_then(|leader| leader.upgrade()) {
            let asked = Patience::timeout(Duration::ZERO);
            let holders = asked.bound_answer(leader.holders(key)).await;
            Owner::leave(leader).await;
            if let Ok(holders) = holders {
                return holders;
            }
        }
        self.ledger.holders_of(key)
    }

    fn lifecycle(&self) -> MutexGuard<'_, Lifecycle> {
        // Both fields are valid at any time, so a panic elsewhere has left nothing half-done.
        self.lifecycle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("backend", &self.backend)
            .field("options", &self.options)
            .field("closed", &self.lifecycle().closed)
            .finish_non_exhaustive()
    }
}

/// Counts for `close` as long as it lives.
#[derive(Debug)]
pub(crate) struct Admission {
    shared: Arc<Shared>,
}

impl Admission {
    pub(crate) fn backend(&self) -> &dyn LockBackend {
        &*self.shared.backend
    }

    pub(crate) fn options(&self) -> &Options {
        &self.shared.options
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.shared.ledger
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut lifecycle = self.shared.lifecycle();
        lifecycle.admitted -= 1;
        let is_last = lifecycle.admitted == 0 && lifecycle.closed;
        drop(lifecycle);
        if is_last {
            self.shared.vacated.tell();
        }
    }
}

/// So far apart are looks at the queues of a manager.
const LOOK: Duration = Duration::from_secs(1);

/// Sees to it that nobody waits in a queue for one who will never pass the lead on.
async fn look_after(manager: Weak<Shared>) {
    loop {
        Delay::new(LOOK).await;
        let Some(manager) = manager.upgrade() else {
            return;
        };
        let is_held = |key| {
            let mode = LockMode::Exclusive;
            manager.ledger.conflicts(Claim { key, mode }, None)
        };
        if !manager.queues.look(is_held) {
            return;
        }
    }
}
