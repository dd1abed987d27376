use std::{
    fmt,
    future::{Future, pending},
    sync::Arc,
};

use crate::{
    Error, FencingToken, LockKey, LockLabel, LockMode, Result,
    owner::{Hold, Owner},
};

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
pub struct LockGuard {
    hold: Hold,
    label: LockLabel,
}

impl LockGuard {
    pub(crate) fn new(hold: Hold, label: LockLabel) -> Self {
        Self { hold, label }
    }

    pub(crate) fn owner(&self) -> Option<&Arc<Owner>> {
        self.hold.owner()
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
    ///
    /// `true` is certain. `false` means that nobody has noticed, and for how long that may be so
    /// depends on the driver. One that listens all the time (tokio-postgres) notices a closed
    /// connection within milliseconds. One that does not (sqlx) needs a statement to notice it, or a
    /// probe; and none of them notices a silent network without. Probes are sent while a section
    /// runs on the session, or [`lost`](Self::lost) is awaited.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.hold.is_lost()
    }

    /// Ends when the lock is lost, with the error that says so; at once if it is already. Never, if
    /// it is released or dropped.
    ///
    /// Whoever polls it does the watching: nothing runs in the background. A closed connection is
    /// seen within a second, a silent network within ten, unless the manager's
    /// [`Options`](crate::Options) say otherwise. It does not borrow the guard, and keeps nothing
    /// alive.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called anew at any time.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::pin::pin;
    /// # use advisory_core::LockManager;
    /// # use advisory_backend_memory::MemoryBackend;
    /// # use futures::future::{Either, select};
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// # async fn import() -> usize { 17 }
    /// let guard = locks.named("imports:run").lock().await?;
    ///
    /// match select(pin!(import()), pin!(guard.lost())).await {
    ///     Either::Left((rows, _)) => println!("imported {rows} rows"),
    ///     Either::Right((lost, _)) => println!("stopped: {lost}"),
    /// }
    /// guard.release().await?;
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn lost(&self) -> impl Future<Output = Error> + Send + 'static + use<> {
        let watch = self.owner().map(|owner| owner.lost());
        async move {
            match watch {
                Some(watch) => watch.await,
                None => pending().await,
            }
        }
    }

    /// The token of this hold: larger than those of all earlier holders, so that what is written
    /// with it can be told from what somebody writes who does not know that the lock has moved on.
    ///
    /// One round trip when it is first asked for; the same token after that. A nested call that has
    /// entered the lock again gets the same token, too.
    ///
    /// # Errors
    ///
    /// - [`Error::Lost`] if the session has ended.
    /// - [`Error::Backend`] if the server cannot give one.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::LockManager;
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// let lock = locks.named("report:7");
    /// let mut newest = None;
    /// for _ in 0..2 {
    ///     lock.with_guard(async |guard| {
    ///         let token = guard.fencing_token().await?;
    ///         // Where it is kept beside the data: `… WHERE fence <= $token`.
    ///         assert!(newest < Some(token));
    ///         newest = Some(token);
    ///         Ok::<(), advisory_core::Error>(())
    ///     }).await??;
    /// }
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn fencing_token(&self) -> Result<FencingToken> {
        let token = match self.owner() {
            Some(owner) => owner.fencing_token(self.hold.claim()).await,
            None => Err(Error::lost(None)),
        };
        token.map_err(|error| error.about(&self.label))
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
    /// Once the future has been polled the lock is freed, whether or not it is polled again. Only within
    /// a tenth of a second after an answer to several who share its connection it may be the next poll,
    /// or the drop, that sends it.
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
        let released = self.hold.release().await;
        released.map_err(|error| error.about(&self.label))
    }

    /// Releases many, in one round trip for each session that they are on.
    ///
    /// # Errors
    ///
    /// As [`release`](Self::release), the first of them. All of the locks are free in any case.
    ///
    /// # Cancel safety
    ///
    /// All are freed, whether or not the future is polled to its end.
    ///
    /// # Examples
    ///
    /// See [`Session::try_lock_each`](crate::Session::try_lock_each).
    pub async fn release_all(guards: impl IntoIterator<Item = Self>) -> Result<()> {
        let holds = guards.into_iter().map(|guard| guard.hold);
        Hold::release_all(holds.collect()).await
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("name", &self.label.name)
            .field("key", &self.key())
            .field("mode", &self.mode())
            .finish_non_exhaustive()
    }
}
