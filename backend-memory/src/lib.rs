//! The in-memory backend of `advisory`: a test double that needs no server.
//!
//! [`MemoryBackend`] plays PostgreSQL's lock manager inside the process: sessions that count their
//! locks, both modes, queues that are served first come first served with PostgreSQL's exceptions,
//! and deadlocks that are found. What passes here waits, misses and fails there in the same places.
//! It needs no runtime and starts no task.
//!
//! Give each test a backend of its own, and each replica that it plays a clone: clones are clients
//! of one server.
//!
//! ```
//! use advisory_backend_memory::MemoryBackend;
//! use advisory_core::{LockManager, Result};
//!
//! /// The code under test: one replica sweeps, the others skip.
//! async fn nightly(locks: &LockManager) -> Result<Option<u32>> {
//!     locks.named("nightly-cleanup").try_with(async || 17).await
//! }
//!
//! # futures::executor::block_on(async {
//! let cluster = MemoryBackend::new();
//! let replica_a = LockManager::new(cluster.clone());
//! let replica_b = LockManager::new(cluster.clone());
//!
//! let guard = replica_a.named("nightly-cleanup").lock().await?;
//! assert_eq!(nightly(&replica_b).await?, None);
//!
//! guard.release().await?;
//! assert_eq!(nightly(&replica_b).await?, Some(17));
//! assert!(cluster.held().is_empty());
//! # Ok::<(), advisory_core::Error>(())
//! # }).unwrap();
//! ```
//!
//! # What a test can do to the server
//!
//! | method | plays |
//! |---|---|
//! | [`kill`](MemoryBackend::kill) | a connection that breaks, and its locks with it |
//! | [`stall`](MemoryBackend::stall), [`resume`](MemoryBackend::resume) | a server or network that stops answering |
//! | [`refuse_sessions`](MemoryBackend::refuse_sessions), [`accept_sessions`](MemoryBackend::accept_sessions) | a server that cannot be reached, is a standby, … |
//! | [`with_max_sessions`](MemoryBackend::with_max_sessions) | a pool of connections that is too small |
//! | [`holders`](MemoryBackend::holders), [`waiters`](MemoryBackend::waiters), [`held`](MemoryBackend::held), [`sessions`](MemoryBackend::sessions) | a look at `pg_locks` |
//!
//! A lock that is lost:
//!
//! ```
//! use advisory_backend_memory::MemoryBackend;
//! use advisory_core::{Error, LockManager};
//!
//! # futures::executor::block_on(async {
//! let server = MemoryBackend::new();
//! let ours = LockManager::new(server.clone()).named("imports:run");
//! let theirs = LockManager::new(server.clone()).named("imports:run");
//!
//! let guard = ours.lock().await?;
//! let holder = &server.holders(ours.key())[0];
//! assert!(server.kill(holder.session));
//!
//! // The lock is free for other replicas, and its holder is told.
//! let rival = theirs.try_lock().await?.expect("the lock is free");
//! assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
//! # rival.release().await?;
//! # Ok::<(), advisory_core::Error>(())
//! # }).unwrap();
//! ```
//!
//! # Where it differs from a server
//!
//! - A deadlock is found as soon as a wait closes the cycle, and not after `deadlock_timeout`. The
//!   victim is the wait that came last.
//! - A wait that goes on in another [`Turn`](advisory_core::spi::Turn) gets its place in the queue
//!   back.
//! - A try is answered as by the servers before PostgreSQL 17: a session that holds a lock
//!   exclusively and tries to take it in shared mode too misses while somebody else waits for it.
//!   Newer servers grant that.
//! - Fencing tokens count from 1, for each server anew.

mod backend;
mod faults;
mod pool;
mod server;
mod session;
mod space;
#[cfg(test)]
mod testing;
mod wakers;

pub use backend::{MemoryBackend, Waiter};
