//! What every PostgreSQL backend has in common, over a small driver trait.
//!
//! Users never need this module. It is for those who bring another PostgreSQL driver: they
//! implement [`Pool`] and [`Connection`], and [`PostgresBackend`] does the rest, from the SQL to
//! the meaning of the server's errors.
//!
//! # For implementers
//!
//! - A [`Connection`] is one server session for as long as it is checked out. Nothing may reconnect
//!   it, and dropping it has to close it: that is how locks are freed when nothing else works.
//! - [`Connection::query`] prepares a statement once per connection. An uncontended lock costs one
//!   such statement, its release another; a driver that prepares each time doubles that.
//! - [`Connection::batch`] has to be one message of the simple protocol. The statements in it rely
//!   on the implicit transaction that the server runs such a message in: the settings that they
//!   change end with it.
//! - Give your users one type of your own that wraps a [`PostgresBackend`] and says how a pool is
//!   made or handed in, and run the conformance suite (`advisory-conformance-tests`) on it.
//!
//! # Examples
//!
//! The whole of a backend, for a driver whose pool is `DriverPool`:
//!
//! ```
//! use advisory_core::{
//!     LockManager, Result,
//!     postgres::{Connection, DriverError, Param, Pool, PostgresBackend, Row},
//! };
//! use async_trait::async_trait;
//!
//! #[derive(Debug)]
//! struct DriverPool { /* … */ }
//! struct DriverConnection { /* … */ }
//!
//! #[async_trait]
//! impl Pool for DriverPool {
//!     type Connection = DriverConnection;
//!
//!     async fn checkout(&self) -> Result<DriverConnection> {
//!         Ok(DriverConnection {})
//!     }
//!
//!     async fn connect(&self) -> Result<DriverConnection> {
//!         Ok(DriverConnection {})
//!     }
//!
//!     fn borrowed(&self) -> Option<usize> {
//!         None
//!     }
//!
//!     async fn close(&self) {}
//! }
//!
//! #[async_trait]
//! impl Connection for DriverConnection {
//!     async fn query(
//!         &mut self,
//!         sql: &'static str,
//!         params: &[Param<'_>],
//!     ) -> Result<Vec<Row>, DriverError> {
//!         // Prepare `sql` unless that was done before, run it, convert its rows.
//! #       let _ = (sql, params);
//!         Ok(Vec::new())
//!     }
//!
//!     async fn batch(&mut self, sql: &str) -> Result<Vec<Row>, DriverError> {
//!         // Send `sql` as one message of the simple protocol.
//! #       let _ = sql;
//!         Ok(Vec::new())
//!     }
//!
//!     fn is_closed(&self) -> bool {
//!         false
//!     }
//!
//!     fn notices_closing(&self) -> bool {
//!         false
//!     }
//!
//!     async fn recycle(self) {}
//! }
//!
//! let locks = LockManager::new(PostgresBackend::new(DriverPool {}));
//! # drop(locks);
//! ```

mod backend;
mod checkup;
mod driver;
#[cfg(test)]
mod fake;
mod holders;
mod known;
mod options;
mod pinned;
mod pooling;
mod product;
mod server;
mod session;
mod settings;
mod slice;
mod sqlstate;
mod statements;
mod tag;
mod token;
mod wait;
mod witness;

pub use crate::limit::in_time;
pub use backend::PostgresBackend;
pub use driver::{Connection, DriverError, Param, Pool, Row, Value, polled_inside};
pub use options::PostgresOptions;
pub use session::PostgresSession;
