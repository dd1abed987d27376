//! The library: an outbox, which keeps messages until they are delivered.
//!
//! It would be a crate of its own. Of the locks it needs `advisory-core` and nothing else: no
//! backend, no driver, no runtime.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
};

use advisory_core::{LockManager, Namespace, Result};

/// One replica's view of the outbox.
#[derive(Debug)]
pub struct Outbox {
    locks: Namespace,
    table: Table,
}

/// Stands for a table of the database: a clone is the same table.
pub type Table = Arc<Mutex<Messages>>;

/// What is in the table.
#[derive(Debug, Default)]
pub struct Messages {
    due: VecDeque<String>,
    delivered: Vec<String>,
}

impl Outbox {
    /// An outbox in this table. Its locks are those of the application's backend, in a namespace
    /// of the outbox's own: they never meet the application's, whatever those are called.
    #[must_use]
    pub fn new(locks: &LockManager, table: &Table) -> Self {
        Self {
            // The version changes when an old release and a new one must not exclude each other.
            locks: locks.namespace("outbox:v1"),
            table: Arc::clone(table),
        }
    }

    /// Adds a message to those that are due.
    pub fn add(&self, message: impl Into<String>) {
        self.table().due.push_back(message.into());
    }

    /// Sends what is due, in order and at least once, and returns how much that was; `None` if
    /// another replica is at it.
    ///
    /// # Errors
    ///
    /// As [`Lock::try_with`](advisory_core::Lock::try_with).
    pub async fn deliver(&self, mut send: impl AsyncFnMut(&str)) -> Result<Option<usize>> {
        let section = async || {
            let mut sent = 0;
            while let Some(message) = self.first_due() {
                send(&message).await;
                let mut table = self.table();
                table.due.pop_front();
                table.delivered.push(message);
                sent += 1;
            }
            sent
        };
        self.locks.named("deliver").try_with(section).await
    }

    /// Deletes what has been delivered, and returns how much that was; `None` if another replica
    /// is at it.
    ///
    /// # Errors
    ///
    /// As [`Lock::try_with`](advisory_core::Lock::try_with).
    pub async fn cleanup(&self) -> Result<Option<usize>> {
        let section = async || self.table().delivered.drain(..).count();
        self.locks.named("cleanup").try_with(section).await
    }

    fn first_due(&self) -> Option<String> {
        self.table().due.front().cloned()
    }

    fn table(&self) -> MutexGuard<'_, Messages> {
        self.table.lock().expect("nobody panics with the table")
    }
}

/// The library's tests need no server: `advisory-backend-memory` is its only dev-dependency.
#[cfg(test)]
mod tests {
    use advisory_backend_memory::MemoryBackend;
    use futures::executor::block_on;

    use super::*;

    #[test]
    fn one_replica_delivers_at_a_time() -> Result<()> {
        let (cluster, table) = (MemoryBackend::new(), Table::default());
        let here = Outbox::new(&LockManager::new(cluster.clone()), &table);
        let there = Outbox::new(&LockManager::new(cluster), &table);
        here.add("welcome");

        let send = async |_: &str| {
            let elsewhere = there.deliver(async |_| panic!("it is being sent")).await;
            assert!(matches!(elsewhere, Ok(None)), "{elsewhere:?}");
        };
        assert_eq!(block_on(here.deliver(send))?, Some(1));
        assert_eq!(block_on(there.deliver(async |_| ()))?, Some(0));
        Ok(())
    }

    #[test]
    fn a_lock_of_the_same_name_is_another_lock() -> Result<()> {
        let locks = LockManager::new(MemoryBackend::new());
        let outbox = Outbox::new(&locks, &Table::default());

        let theirs = block_on(locks.named("cleanup").lock())?;
        assert_eq!(block_on(outbox.cleanup())?, Some(0));
        block_on(theirs.release())
    }
}
