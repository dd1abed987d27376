use std::{fmt, sync::Arc};

use advisory_core::{LockBackend, postgres::PostgresOptions};
use async_trait::async_trait;

use super::{Database, PoolMode, Server, Tap, left_out, observer::PostgresObserver};
use crate::{Harness, Observer, Space};

/// What the suite has to know of a PostgreSQL backend.
#[async_trait]
pub trait Driver: fmt::Debug + Send + Sync + 'static {
    /// The backend as its users make it, on a pool of at most so many connections that is handed
    /// in.
    async fn backend(
        &self,
        url: &str,
        connections: usize,
        options: PostgresOptions,
    ) -> Box<dyn LockBackend>;

    /// The same on a pool of the backend's own, which it opens by its `connect_pool`.
    async fn owned(
        &self,
        url: &str,
        connections: usize,
        options: PostgresOptions,
    ) -> Box<dyn LockBackend>;

    /// The same on a pool that is tapped, `PostgresBackend::new(tap.on(pool))`, and that lets
    /// nobody wait for a connection longer than a few seconds.
    async fn tapped(
        &self,
        url: &str,
        connections: usize,
        options: PostgresOptions,
        tap: &Tap,
    ) -> Box<dyn LockBackend>;

    /// Whether the pool puts all settings of a connection back before it lends it again.
    fn resets_settings(&self) -> bool {
        false
    }
}

/// The options of a backend that has its pool to itself.
pub(super) fn all_of(connections: usize) -> PostgresOptions {
    options().max_sessions(connections)
}

/// The options that a backend of these tests begins with: what is before the servers may ask for some.
#[must_use]
pub fn options() -> PostgresOptions {
    let options = PostgresOptions::new();
    if PoolMode::pins_all() {
        options.pinned()
    } else {
        options
    }
}

/// Makes a harness of a driver: each case gets a database of its own on the shared server.
#[derive(Clone, Debug)]
pub struct Postgres {
    driver: Arc<dyn Driver>,
}

impl Postgres {
    /// The harness of this driver.
    pub fn new(driver: impl Driver) -> Self {
        Self {
            driver: Arc::new(driver),
        }
    }

    pub(super) fn driver(&self) -> &Arc<dyn Driver> {
        &self.driver
    }

    pub(super) async fn space_in(&self, database: Arc<Database>) -> PostgresSpace {
        PostgresSpace {
            driver: Arc::clone(&self.driver),
            observer: PostgresObserver::new(database.client().await),
            database,
        }
    }
}

#[async_trait]
impl Harness for Postgres {
    async fn space(&self) -> Box<dyn Space> {
        let database = Arc::new(Server::shared().database().await);
        Box::new(self.space_in(database).await)
    }

    fn leaves_out(&self, case: &str) -> bool {
        left_out(case)
    }
}

#[derive(Debug)]
pub(super) struct PostgresSpace {
    driver: Arc<dyn Driver>,
    database: Arc<Database>,
    observer: PostgresObserver,
}

#[async_trait]
impl Space for PostgresSpace {
    async fn backend(&self, connections: usize) -> Box<dyn LockBackend> {
        let url = self.database.url();
        self.driver
            .backend(url, connections, all_of(connections))
            .await
    }

    fn observer(&self) -> &dyn Observer {
        &self.observer
    }

    fn expect_vain_unlocks(&self) {
        self.database
            .expect_in_log("WARNING:  you don't own a lock of type");
    }

    async fn remove(&self) {
        self.database.discard().await;
    }

    fn audit(&self) {
        self.database.assert_log_is_clean();
    }
}
