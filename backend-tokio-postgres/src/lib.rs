//! Named, cluster-wide locks on PostgreSQL, over [tokio-postgres](::tokio_postgres), pooled by
//! [deadpool-postgres](::deadpool_postgres).
//!
//! [`TokioPostgresBackend`] is what a [`LockManager`](advisory_core::LockManager) is made with.
//! Everything else, from the SQL to the meaning of its errors, is the core's; this crate only
//! brings the driver: [`TokioPostgresPool`] and [`TokioPostgresConnection`].
//!
//! # Runtime and TLS
//!
//! tokio only. Locks are taken inside a runtime; releasing works in any task, dropping anywhere.
//! TLS comes with whatever connector
//! [`connect_with`](TokioPostgresBackend::connect_with) is given, or with the pool that is handed
//! in.
//!
//! # What a lock costs
//!
//! The core's own statements, one to take it and one to give it back, once a connection has
//! prepared them. The pool adds none, if it recycles by
//! [`RecyclingMethod::Fast`](deadpool_postgres::RecyclingMethod::Fast), as a pool of the backend's
//! own does. The driver notices by itself when a connection closes; only a section that takes longer
//! than four seconds costs an empty statement, every four seconds, to tell whether the network has gone
//! silent.
//!
//! # How a loss is noticed
//!
//! The driver's task reads all the time. So
//! [`LockGuard::is_lost`](advisory_core::LockGuard::is_lost) is true a few milliseconds after the
//! connection has closed, also of a guard that nobody watches. Of a network that has gone silent it
//! knows nothing before a statement, or a probe, was not answered in time.
//!
//! # Examples
//!
//! ```no_run
//! use advisory_backend_tokio_postgres::TokioPostgresBackend;
//! use advisory_core::LockManager;
//!
//! # async fn example() -> advisory_core::Result<()> {
//! let backend = TokioPostgresBackend::connect("postgres://app@localhost/app").await?;
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
mod tls;

pub use backend::TokioPostgresBackend;
pub use connection::TokioPostgresConnection;
pub use pool::TokioPostgresPool;
pub use tls::TlsConnector;
