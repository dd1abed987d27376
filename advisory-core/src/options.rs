use std::time::Duration;

use crate::patience::FOREVER;

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
}

impl Options {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            answer_within: Duration::from_secs(10),
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
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
