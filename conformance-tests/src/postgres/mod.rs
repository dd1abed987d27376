//! A throw-away PostgreSQL, and what the suite needs to run on it.
//!
//! - [`Server`] starts one server per test process, or uses the one that `DATABASE_URL` names.
//! - [`Database`] is a lock space of its own on a server: advisory locks are kept per database.
//! - [`RawClient`] talks to the server without the library, on any runtime.
//! - [`Postgres`] is the [`Harness`](crate::Harness) of every [`Driver`].
//! - [`Tap`] sends statements on the library's own connections.
//! - [`Guise`] is what a pool can play: servers and poolers that are not run here.
//! - [`loss_suite!`](crate::loss_suite) takes locks away from their holders, for every cause there is.
//! - [`storm()`] cancels, kills and cuts at random.
//! - [`chaos()`] does worse than that to processes, and checks what they tell of it.
//! - [`Pooler`] is a `PgBouncer` before a server; `ADVISORY_POOLER` puts one before every server.
//! - [`Proxy`] stands between the library and the server, and does what a network can do.

mod binaries;
mod cancellation;
mod cases;
mod chaos;
mod client;
mod database;
mod driver;
mod env;
mod guise;
mod host;
mod left_out;
mod log;
mod loss;
mod observer;
mod pooler;
mod process;
mod proxied;
mod proxy;
mod server;
mod storm;
mod supervisor;
mod tap;

use std::sync::LazyLock;

use tokio::runtime::{Builder, Runtime};

pub use chaos::{chaos, worker};
pub use client::RawClient;
pub use database::Database;
pub use driver::{Driver, Postgres, options};
pub use env::{PostgresEnv, run_postgres_case};
pub use guise::{Disguised, DisguisedConnection, Guise};
pub use host::Host;
pub use left_out::left_out;
pub use loss::{LossEnv, a_frozen_holder_is_fenced_off, holder, run_loss_case};
pub use pooler::{PoolMode, Pooler};
pub use process::{
    a_killed_holder_loses_its_lock, a_killed_waiter_is_gone_soon, a_vanished_host_loses_its_lock,
    client,
};
pub use proxied::{ProxiedEnv, run_proxied_case};
pub use proxy::{Point, Proxy, Stop};
pub use server::Server;
pub use storm::storm;
pub use tap::{Tap, Tapped, TappedConnection};

/// Drives the connections of the raw clients, beside whatever runtime the case is on.
fn background() -> &'static Runtime {
    static BACKGROUND: LazyLock<Runtime> = LazyLock::new(|| {
        Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("raw-clients")
            .enable_all()
            .build()
            .expect("tokio starts")
    });
    &BACKGROUND
}
