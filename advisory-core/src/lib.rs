//! Named, cluster-wide locks: the core that users, library authors and backends share.
//!
//! Applications use the facade crate `advisory`, which re-exports this one together with the
//! backends that its features switch on. A library that needs a lock depends on this crate alone
//! and takes a [`LockManager`]; its users pick the backend.
//!
//! # What a user touches
//!
//! - [`LockManager`] is made once per backend; it hands out locks and namespaces.
//! - [`Lock`] is a value, a key with its options. It runs sections ([`Lock::with`],
//!   [`Lock::try_with`]) or hands out guards ([`Lock::lock`], [`Lock::try_lock`]).
//! - [`LockGuard`] is the proof that a lock is held.
//! - [`Session`] holds many locks on one connection, and makes spawned tasks part of a section.
//! - [`Error`] is everything that can go wrong.
//!
//! # What a backend author implements
//!
//! [`LockBackend`] and [`LockSession`], in [`spi`]; or, for one more PostgreSQL driver, the two
//! smaller traits of the module `postgres` (feature `postgres`).
//!
//! # Examples
//!
//! ```
//! use advisory_core::LockManager;
//! # use advisory_backend_memory::MemoryBackend;
//!
//! # futures::executor::block_on(async {
//! let locks = LockManager::new(MemoryBackend::new());
//!
//! // The winner runs the section, everybody else gets `None`.
//! let ran = locks.named("nightly-cleanup").try_with(async || "swept").await?;
//! assert_eq!(ran, Some("swept"));
//! # Ok::<(), advisory_core::Error>(())
//! # }).unwrap();
//! ```

mod batch;
mod context;
mod error;
mod fencing;
mod guard;
mod holder;
mod key;
mod label;
mod ledger;
mod limit;
mod line;
mod lock;
mod manager;
mod mode;
mod namespace;
mod news;
mod options;
mod owner;
mod patience;
#[cfg(feature = "postgres")]
pub mod postgres;
mod queue;
mod report;
mod session;
mod sharing;
pub mod spi;
mod sync;
mod wrap;

pub use error::{Cause, Error, Result, Section, Stage};
pub use fencing::FencingToken;
pub use guard::LockGuard;
pub use holder::Holder;
pub use key::{LockKey, derive_key};
pub use label::LockLabel;
pub use lock::{Lock, OnLoss};
pub use manager::LockManager;
pub use mode::LockMode;
pub use namespace::Namespace;
pub use options::{Options, Sessions};
pub use report::{Finding, Pooling, Report, Role, Severity, Usage};
pub use session::Session;
pub use spi::{LockBackend, LockSession, SessionId};
