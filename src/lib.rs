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
//! `tokio-postgres` runs on tokio, and `TokioPostgresBackend::connect` needs nothing else. For a pool
//! of your own (`from_pool`) add the first two of these lines, for TLS (`connect_with`) the first and
//! one of the pairs:
//!
//! ```toml
//! tokio-postgres = "0.7"
//! deadpool-postgres = "0.14"
//!
//! tokio-postgres-rustls = "0.14"
//! rustls = "0.23"
//!
//! postgres-native-tls = "0.5"
//! native-tls = "0.2"
//! ```
//!
//! With rustls, for a server whose certificate is signed by an authority of your own:
//!
//! ```text
//! let config: tokio_postgres::Config =
//!     // Without `sslmode` the driver goes on in plain text if the server has no TLS.
//!     "postgres://app:secret@db.example/app?sslmode=require".parse()?;
//!
//! let mut roots = rustls::RootCertStore::empty();
//! for certificate in CertificateDer::pem_file_iter("/etc/ssl/db-ca.pem")? {
//!     roots.add(certificate?)?;
//! }
//! let tls = rustls::ClientConfig::builder()
//!     .with_root_certificates(roots)
//!     .with_no_client_auth();
//! let tls = tokio_postgres_rustls::MakeRustlsConnect::new(tls);
//!
//! let locks = LockManager::new(TokioPostgresBackend::connect_with(config, tls).await?);
//! ```
//!
//! with `use rustls::pki_types::{CertificateDer, pem::PemObject};`. A pool of your own takes the same
//! connector: `deadpool_postgres::Manager::new(config, tls)`.
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
//! feature out. Without a runtime sqlx panics when it first connects:
//! ``one of the `runtime` features of SQLx must be enabled``.
//!
//! # The guide
//!
//! [`guide`] has the long answers: sizing the pool, options, failures and fencing tokens, deadlocks,
//! tests, writing a backend, the design.

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
