//! Testing code that takes locks, without a server.
//!
//! Code that takes a [`LockManager`](crate::LockManager) does not know its backend. Give it one on
//! a `MemoryBackend` (feature `memory`, on by default): a lock server inside the process, with
//! PostgreSQL's rules for sessions, modes, queues and deadlocks. It needs no runtime.
//!
//! Give each test a backend of its own; they share nothing. Within a test make a clone of the
//! backend for each replica that it plays: clones are clients of one server.
//!
//! # Two replicas
//!
//! ```
//! use advisory::{LockManager, MemoryBackend, Result};
//!
//! /// The code under test.
//! async fn nightly(locks: &LockManager) -> Result<&'static str> {
//!     let ran = locks.named("nightly-cleanup").try_with(async || "ran").await?;
//!     Ok(ran.unwrap_or("skipped"))
//! }
//!
//! # futures::executor::block_on(async {
//! let server = MemoryBackend::new();
//! let here = LockManager::new(server.clone());
//! let there = LockManager::new(server.clone());
//!
//! let guard = there.named("nightly-cleanup").lock().await?;
//! assert_eq!(nightly(&here).await?, "skipped");
//!
//! guard.release().await?;
//! assert_eq!(nightly(&here).await?, "ran");
//!
//! // Nothing was left behind.
//! assert!(server.held().is_empty() && server.sessions().is_empty());
//! # Ok::<(), advisory::Error>(())
//! # }).unwrap();
//! ```
//!
//! Two managers are two processes to the library. Two tasks of one manager exclude each other as
//! well, but a nested call re-enters, so a test of contention inside a section needs the second
//! manager.
//!
//! # Who holds, who waits
//!
//! | method | what it shows |
//! |---|---|
//! | `holders(key)` | who holds the lock, in which mode |
//! | `waiters(key)` | who waits for it, in the order in which they will get it |
//! | `held()` | everything that is held |
//! | `sessions()` | the connections that are in use |
//!
//! A test that needs somebody to wait polls them once, and then looks; there is no need to sleep. It
//! takes two managers, as two replicas have: the callers of one queue up before they come to the
//! server.
//!
//! ```
//! use advisory::{LockManager, MemoryBackend};
//!
//! # futures::executor::block_on(async {
//! let server = MemoryBackend::new();
//! let digest = LockManager::new(server.clone()).named("digest");
//! let guard = LockManager::new(server.clone()).named("digest").lock().await?;
//!
//! let mut second = Box::pin(digest.with(async || "second"));
//! assert!(futures::poll!(&mut second).is_pending());
//! assert_eq!(server.waiters(digest.key()).len(), 1);
//!
//! guard.release().await?;
//! assert_eq!(second.await?, "second");
//! # Ok::<(), advisory::Error>(())
//! # }).unwrap();
//! ```
//!
//! # What a test can break
//!
//! | method | plays |
//! |---|---|
//! | `kill(session)` | a connection that breaks, and its locks with it |
//! | `stall()`, `resume()` | a server or a network that stops answering, with all connections open |
//! | `refuse_sessions(error)`, `accept_sessions()` | a server that is down, or a standby, … |
//! | `with_max_sessions(n)`, `with_checkout_timeout(limit)` | a pool that is too small |
//!
//! # A test that loses a lock
//!
//! Where the code under test awaits something, its section is stopped
//! ([how a loss is seen](super::failure#how-a-loss-is-seen)). Short bounds make that quick:
//!
//! ```
//! use std::time::Duration;
//!
//! use advisory::{Error, LockManager, MemoryBackend, Options, Section};
//!
//! # futures::executor::block_on(async {
//! let server = MemoryBackend::new();
//! let options = Options::new().loss_seen_within(Duration::from_millis(20));
//! let locks = LockManager::with_options(server.clone(), options);
//! let import = locks.named("imports:run");
//!
//! let result = import.with(async || {
//!     server.kill(server.holders(import.key())[0].session);
//!     // Stands for work that takes long.
//!     futures::future::pending::<()>().await;
//! }).await;
//! assert!(matches!(result, Err(Error::Lost { section: Section::Stopped, .. })));
//! # });
//! ```
//!
//! Where it awaits nothing it has to look by itself. This one imports in steps, and the test breaks
//! the connection between two of them:
//!
//! ```
//! use advisory::{Error, LockManager, MemoryBackend, Result};
//!
//! /// The code under test: how far it came.
//! async fn import(locks: &LockManager, mut step: impl FnMut(u32)) -> (u32, Result<()>) {
//!     let mut done = 0;
//!     let result = locks.named("imports:run").with_guard(async |guard| {
//!         while done < 3 && !guard.is_lost() {
//!             step(done);
//!             done += 1;
//!         }
//!     }).await;
//!     (done, result)
//! }
//!
//! # futures::executor::block_on(async {
//! let server = MemoryBackend::new();
//! let locks = LockManager::new(server.clone());
//!
//! let (done, result) = import(&locks, |_| {}).await;
//! assert!(done == 3 && result.is_ok());
//!
//! let key = locks.named("imports:run").key();
//! let (done, result) = import(&locks, |step| {
//!     if step == 1 {
//!         let holder = server.holders(key)[0].session;
//!         assert!(server.kill(holder));
//!     }
//! }).await;
//! assert_eq!(done, 2);
//! assert!(matches!(result, Err(Error::Lost { .. })));
//! # });
//! ```
//!
//! # A test that meets a bad server
//!
//! ```
//! use std::time::Duration;
//!
//! use advisory::{Error, LockManager, MemoryBackend, Stage};
//!
//! # futures::executor::block_on(async {
//! let server = MemoryBackend::new();
//! let locks = LockManager::new(server.clone());
//! let digest = locks.named("digest");
//!
//! server.refuse_sessions(Error::NotPrimary);
//! assert!(matches!(digest.try_lock().await, Err(Error::NotPrimary)));
//! server.accept_sessions();
//!
//! // On a session that is open; a new one would not come about.
//! let session = locks.session().await?;
//! server.stall();
//! let stalled = session.lock_timeout(&digest, Duration::from_millis(10)).await;
//! assert!(matches!(stalled, Err(Error::Timeout { stage: Stage::Server, .. })));
//!
//! // What was asked in the meantime is answered now, and given back, for its caller has left.
//! server.resume();
//! assert!(session.try_lock(&locks.named("other")).await?.is_some());
//! assert!(server.holders(digest.key()).is_empty());
//! # session.release().await?;
//! # Ok::<(), advisory::Error>(())
//! # }).unwrap();
//! ```
//!
//! # What only a server shows
//!
//! - How long things take. A deadlock, for one, is found at once here, and on a server after its
//!   `deadlock_timeout`.
//! - A waiter here keeps its place in the queue; on a server it may lose it at the end of a slice.
//! - What a fencing token costs, and that it outlives the server: here it is a count from 1.
//! - Network, failover, poolers, permissions, and what your queries do beside the lock.
//!
//! Keep one test against PostgreSQL for these. The rest of the difference is in the documentation
//! of the crate `advisory-backend-memory`.
