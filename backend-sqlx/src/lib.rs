//! Named, cluster-wide locks on PostgreSQL, over [sqlx].
//!
//! [`SqlxBackend`] is what a [`LockManager`](advisory_core::LockManager) is made with. Everything
//! else, from the SQL to the meaning of its errors, is the core's; this crate only brings the
//! driver: [`SqlxPool`] and [`SqlxConnection`].
//!
//! # Runtime and TLS
//!
//! This crate switches on no runtime and no TLS of sqlx. A program chooses both by sqlx's own
//! features (`runtime-tokio`, `runtime-smol`, `runtime-async-std`, `tls-…`). Locks are taken inside
//! that runtime, as sqlx asks for (it panics elsewhere); releasing works in any task, dropping
//! anywhere. Without a runtime feature it panics at the first connection:
//! ``one of the `runtime` features of SQLx must be enabled``.
//!
//! # What a lock costs
//!
//! The core's own statements, one to take it and one to give it back, once a connection has
//! prepared them. sqlx adds no statement, but it tests a connection by an empty message at each
//! checkout and at each return: two round trips, the second, on tokio, in a task of its own that
//! nobody waits for. A pool with `test_before_acquire(false)` spares the first; then a connection
//! that broke in the pool is noticed by the statement that takes the lock. A return that the server
//! does not answer within five seconds is given up: the connection is closed, and its place in the
//! pool is free.
//!
//! # How a loss is noticed
//!
//! sqlx does not listen on a connection while it is asked nothing, so in a section that takes longer
//! than half a second the core probes it, every half second, by an empty statement. It does the same
//! while somebody awaits [`LockGuard::lost`](advisory_core::LockGuard::lost).
//!
//! A guard that nobody watches is not probed: its
//! [`is_lost`](advisory_core::LockGuard::is_lost) stays false, however long its connection has been
//! closed, until the next statement on it.
//!
//! # What sqlx does besides
//!
//! - While a server refuses connections a checkout tries again until the pool's limit ends; what
//!   comes out is [`Error::PoolExhausted`](advisory_core::Error::PoolExhausted).
//! - Statements that take longer than a second are logged as slow, and one that waits for a lock
//!   can. [`log_slow_statements`](sqlx::ConnectOptions::log_slow_statements) has a say in that.
//!
//! # Examples
//!
//! ```no_run
//! use advisory_backend_sqlx::SqlxBackend;
//! use advisory_core::LockManager;
//!
//! # async fn example() -> advisory_core::Result<()> {
//! let backend = SqlxBackend::connect("postgres://app@localhost/app").await?;
//! let locks = LockManager::new(backend);
//!
//! locks.named("nightly-cleanup").try_with(async || { /* … */ }).await?;
//! locks.close().await?;
//! # Ok(())
//! # }
//! ```

pub use advisory_core::postgres::PostgresOptions;

mod backend;
mod connection;
mod error;
mod pool;

pub use backend::SqlxBackend;
pub use connection::SqlxConnection;
pub use pool::SqlxPool;
