use std::time::Duration;

use crate::patience::FOREVER;

/// No use in looking more often.
const LEAST_BOUND: Duration = Duration::from_millis(10);

/// How a [`LockManager`](crate::LockManager) behaves where that is a matter of taste.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use advisory_core::{LockManager, Options};
/// # use advisory_backend_memory::MemoryBackend;
///
/// let options = Options::new().answer_within(Duration::from_secs(3));
/// let locks = LockManager::with_options(MemoryBackend::new(), options);
/// # drop(locks);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub(crate) answer_within: Duration,
    pub(crate) closed_within: Duration,
    pub(crate) silent_within: Duration,
    pub(crate) hand_over_within: Duration,
    pub(crate) sessions: Sessions,
}

/// On which connections a manager's locks live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sessions {
    /// Each section and each guard outside of one has a connection of its own, and all that is
    /// nested in it lives there. The server sees every owner, and finds every deadlock.
    #[default]
    Each,
    /// All live on one connection, which stays open until the manager is closed. What any number of
    /// tasks ask for at the same moment travels as one statement, so that few connections carry many
    /// locks.
    ///
    /// The price:
    ///
    /// - One lost connection loses all the locks on it.
    /// - A deadlock between nested sections of this manager is found by nobody: their timeouts end
    ///   it, so give them some.
    /// - A lock that another process holds is waited for, and then held, on a connection of its own.
    /// - Who holds a lock shared and wants it exclusively looks for it from time to time, and does
    ///   not queue up.
    Shared,
}

impl Options {
    /// How long a session may take to answer that holds something whose loss has to be seen in time.
    pub(crate) fn holder_answers_within(&self) -> Duration {
        self.answer_within.min(self.silent_within / 2)
    }

    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            answer_within: Duration::from_secs(10),
            closed_within: Duration::from_secs(1),
            silent_within: Duration::from_secs(10),
            hand_over_within: Duration::from_millis(1),
            sessions: Sessions::Each,
        }
    }

    /// How long the server may leave a statement unanswered before its session counts as lost and
    /// its connection is closed; 10 seconds by default. A wait for a lock may take that much longer
    /// than it was asked to.
    ///
    /// This bounds everything that has no timeout of its own: acquisitions, releases, and what
    /// [`close`](crate::LockManager::close) sends.
    #[must_use]
    pub fn answer_within(mut self, limit: Duration) -> Self {
        self.answer_within = limit.min(FOREVER);
        self
    }

    /// How soon a section is stopped after its connection was closed; 1 second by default, at
    /// least 10 milliseconds.
    ///
    /// A driver that notices this by itself is looked at twice in that time. With one that does not
    /// (sqlx), the session is probed that often, by an empty statement.
    #[must_use]
    pub fn loss_seen_within(mut self, bound: Duration) -> Self {
        self.closed_within = bound.clamp(LEAST_BOUND, FOREVER);
        self
    }

    /// How soon a section is stopped after the network has gone silent; 10 seconds by default, at
    /// least 10 milliseconds.
    ///
    /// A session that was not heard of for two fifths of it is probed, and has half of it to answer. A
    /// statement on a session that holds something has that half, too.
    #[must_use]
    pub fn silence_seen_within(mut self, bound: Duration) -> Self {
        self.silent_within = bound.clamp(LEAST_BOUND, FOREVER);
        self
    }

    /// How long a lock may be handed over within this process before other processes get their turn;
    /// 1 millisecond by default, and zero means never.
    ///
    /// Callers of one manager that wait for the same lock queue up locally, and use one connection
    /// between them. A holder who releases it hands it to the next of them without a word to the
    /// server, unless it was that long ago that the server granted it: then the lock is given back to
    /// the server, which gives it to whoever waits there.
    ///
    /// A longer time means more throughput here, and longer waits elsewhere.
    #[must_use]
    pub fn hand_over_within(mut self, limit: Duration) -> Self {
        self.hand_over_within = limit.min(FOREVER);
        self
    }

    /// On which connections the locks live; each on one of its own by default.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::{LockManager, Options, Sessions};
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// let options = Options::new().sessions(Sessions::Shared);
    /// let locks = LockManager::with_options(MemoryBackend::new(), options);
    ///
    /// let first = locks.named("tenant:1").lock().await?;
    /// let second = locks.named("tenant:2").lock().await?;
    /// // On one connection, which excludes itself from nothing; the manager does.
    /// assert!(locks.named("tenant:1").try_lock().await?.is_none());
    /// # first.release().await?;
    /// # second.release().await?;
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn sessions(mut self, sessions: Sessions) -> Self {
        self.sessions = sessions;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
