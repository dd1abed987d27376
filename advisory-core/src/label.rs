use std::{fmt, sync::Arc};

use crate::LockKey;

/// What an error calls the lock that it is about: its name, if it has one, and its key.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # use advisory_core::LockManager;
/// # use advisory_backend_memory::MemoryBackend;
/// # futures::executor::block_on(async {
/// # let locks = LockManager::new(MemoryBackend::new());
/// let guard = locks.named("imports:run").lock().await?;
///
/// let late = locks.named("imports:run").lock_timeout(Duration::ZERO).await.unwrap_err();
/// assert!(late.to_string().starts_with("lock \"imports:run\": timed out"));
/// # guard.release().await?;
/// # Ok::<(), advisory_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockLabel {
    /// The name that the lock was asked for by, without its namespaces; `None` for a raw key.
    pub name: Option<Arc<str>>,
    /// The key that the server sees.
    pub key: LockKey,
}

/// `"imports:run"`, or the key of a lock without a name.
impl fmt::Display for LockLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name:?}"),
            None => self.key.fmt(f),
        }
    }
}
