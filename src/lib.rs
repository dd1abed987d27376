#![doc = include_str!("../README.md")]
//!
//! # Features
//!
//! | feature | what it adds | on by default |
//! |---|---|---|
//! | `memory` | [`MemoryBackend`](https://docs.rs/advisory-backend-memory), the double for unit tests | yes |
//! | `tokio-postgres` | [`TokioPostgresBackend`](https://docs.rs/advisory-backend-tokio-postgres) over tokio-postgres, pooled by deadpool-postgres | no |
//! | `sqlx` | [`SqlxBackend`](https://docs.rs/advisory-backend-sqlx) over sqlx | no |
//!
//! Features only add; they can be combined. `memory` is the default because unit tests and
//! examples then need no feature, and because it costs nothing: it has no dependency that the core
//! does not have. A database driver is never a default, for a program should not compile one that
//! it does not use.
//!
//! A library that takes a lock depends on `advisory-core` alone and accepts a [`LockManager`]; its
//! users pick the backend.
//!
//! # Runtime and TLS
//!
//! `tokio-postgres` runs on tokio. Its TLS comes with the connector that
//! `TokioPostgresBackend::connect_with` is given, or with your pool.
//!
//! sqlx leaves both choices to the program. The feature `sqlx` makes neither, so that a program
//! which has made them already is not given a second runtime. Add one of these lines next to
//! `advisory`:
//!
//! ```toml
//! sqlx = { version = "0.9", default-features = false, features = ["postgres", "runtime-tokio", "tls-rustls"] }
//! sqlx = { version = "0.9", default-features = false, features = ["postgres", "runtime-smol", "tls-rustls"] }
//! sqlx = { version = "0.9", default-features = false, features = ["postgres", "runtime-async-std", "tls-rustls"] }
//! ```
//!
//! For TLS by the operating system's library write `tls-native-tls`; without TLS leave the last
//! feature out.
//!
//! # The guide
//!
//! [`guide`] has the long answers: sizing the pool, failures, deadlocks, tests, writing a backend.

pub mod guide;

pub use advisory_core::*;

#[cfg(feature = "memory")]
pub use advisory_backend_memory::{MemoryBackend, Waiter};
#[cfg(feature = "sqlx")]
pub use advisory_backend_sqlx::SqlxBackend;
#[cfg(feature = "tokio-postgres")]
pub use advisory_backend_tokio_postgres::TokioPostgresBackend;
#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
pub use advisory_core::postgres::PostgresOptions;
