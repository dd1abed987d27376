//! The suite that every backend of `advisory` must pass.
//!
//! [`suite!`] generates one named `#[test]` per case, for one backend ([`Harness`]) on one runtime
//! ([`runtime`]). All backends run the same list, and no case passes by being skipped. Cases look
//! at what is held through an [`Observer`], never through the library alone.
//!
//! The crate depends on `advisory-core` alone, for those who write backends. With the feature
//! `postgres` it brings a throw-away server, an observer for it, and `postgres_suite!` with the
//! cases that make sense on PostgreSQL only.
//!
//! | feature | |
//! |---|---|
//! | `tokio`, `smol`, `async-std` | a runtime to run the suite on; plain threads need no feature |
//! | `postgres` | the module `postgres`, and `postgres_suite!` |
//!
//! # Examples
//!
//! The `tests/conformance.rs` of a backend, here of the memory backend:
//!
//! ```
//! use advisory_backend_memory::MemoryBackend;
//! use advisory_conformance_tests::{Harness, Observer, SeenLock, Space};
//! use advisory_core::{LockBackend, LockKey, spi::Claim};
//! use async_trait::async_trait;
//!
//! mod threads {
//!     use advisory_conformance_tests::{runtime::Threads, suite};
//!
//!     suite!(crate::Memory, Threads);
//! }
//!
//! #[derive(Debug)]
//! struct Memory;
//!
//! #[async_trait]
//! impl Harness for Memory {
//!     async fn space(&self) -> Box<dyn Space> {
//!         Box::new(MemorySpace(MemoryBackend::new()))
//!     }
//! }
//!
//! #[derive(Debug)]
//! struct MemorySpace(MemoryBackend);
//!
//! #[async_trait]
//! impl Space for MemorySpace {
//!     async fn backend(&self, connections: usize) -> Box<dyn LockBackend> {
//!         Box::new(self.0.clone().with_max_sessions(connections))
//!     }
//!
//!     fn observer(&self) -> &dyn Observer {
//!         self
//!     }
//!
//!     async fn remove(&self) {}
//! }
//!
//! #[async_trait]
//! impl Observer for MemorySpace {
//!     async fn held(&self) -> Vec<SeenLock> {
//!         let held = self.0.held().into_iter();
//!         held.map(|holder| SeenLock {
//!             claim: Claim { key: holder.key, mode: holder.mode },
//!             session: holder.session.number(),
//!         })
//!         .collect()
//!     }
//!
//!     async fn waiters(&self, key: LockKey) -> usize {
//!         self.0.waiters(key).len()
//!     }
//!
//!     async fn sessions(&self) -> Vec<i64> {
//!         let sessions = self.0.sessions().into_iter();
//!         sessions.map(|session| session.number()).collect()
//!     }
//!
//!     async fn terminate(&self, session: i64) {
//!         let mut sessions = self.0.sessions().into_iter();
//!         let session = sessions.find(|found| found.number() == session);
//!         assert!(self.0.kill(session.expect("it is alive")));
//!     }
//! }
//! # fn main() {}
//! ```

#![allow(clippy::missing_panics_doc, reason = "a test fails by a panic")]

mod cases;
mod env;
mod every_poll;
mod harness;
mod interrupted;
mod list;
mod observer;
mod outcome;
#[cfg(feature = "postgres")]
pub mod postgres;
mod run;
pub mod runtime;
mod sharing;
mod spi;
mod storm;
mod sync;
mod task;

pub use env::Env;
pub use harness::{Harness, Space};
pub use observer::{Observer, SeenLock};
#[cfg(feature = "postgres")]
pub use postgres::{run_loss_case, run_postgres_case, run_proxied_case};
pub use run::{run_case, run_every_poll_case};
pub use runtime::Runtime;
pub use sharing::Sharing;
pub use storm::{Strike, storm};
pub use task::Task;
