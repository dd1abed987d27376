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
}

impl Options {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            answer_within: Duration::from_secs(10),
            closed_within: Duration::from_secs(1),
            silent_within: Duration::from_secs(10),
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
    /// A session that was not heard of for half of it is probed, and has the other half to answer.
    #[must_use]
    pub fn silence_seen_within(mut self, bound: Duration) -> Self {
        self.silent_within = bound.clamp(LEAST_BOUND, FOREVER);
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
