//! The backend, as the suites have to know it.

use std::time::Duration;

use advisory_backend_tokio_postgres::{TokioPostgresBackend, TokioPostgresPool};
use advisory_conformance_tests::postgres::{Driver, Postgres, Tap};
use advisory_core::{
    LockBackend,
    postgres::{PostgresBackend, PostgresOptions},
};
use async_trait::async_trait;
use deadpool_postgres::{
    Manager, ManagerConfig, Pool, PoolBuilder, PoolConfig, RecyclingMethod, Runtime,
};
use tokio_postgres::NoTls;

pub(crate) fn recycled_by(recycling: RecyclingMethod) -> Postgres {
    Postgres::new(Deadpool { recycling })
}

/// How long a tapped pool lets somebody wait.
const CHECKOUT_LIMIT: Duration = Duration::from_secs(3);

#[derive(Debug)]
struct Deadpool {
    recycling: RecyclingMethod,
}

impl Deadpool {
    fn pool(&self, url: &str, connections: usize) -> PoolBuilder {
        let recycling_method = self.recycling.clone();
        let config = ManagerConfig { recycling_method };
        let url = url.parse().expect("a URL of the fixture");
        Pool::builder(Manager::from_config(url, NoTls, config)).max_size(connections)
    }
}

#[async_trait]
impl Driver for Deadpool {
    async fn backend(
        &self,
        url: &str,
        connections: usize,
        options: PostgresOptions,
    ) -> Box<dyn LockBackend> {
        let pool = self.pool(url, connections).build();
        let pool = pool.expect("no timeout needs a runtime");
        Box::new(TokioPostgresBackend::from_pool(pool).with_options(options))
    }

    async fn owned(
        &self,
        url: &str,
        connections: usize,
        options: PostgresOptions,
    ) -> Box<dyn LockBackend> {
        let config = url.parse().expect("a URL of the fixture");
        let pool = PoolConfig::new(connections);
        let backend = TokioPostgresBackend::connect_pool(config, NoTls, pool).await;
        let backend = backend.expect("the server is there");
        Box::new(backend.with_options(options))
    }

    async fn tapped(
        &self,
        url: &str,
        connections: usize,
        options: PostgresOptions,
        tap: &Tap,
    ) -> Box<dyn LockBackend> {
        let pool = self
            .pool(url, connections)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(CHECKOUT_LIMIT))
            .build()
            .expect("the timeout has its runtime");
        let backend = PostgresBackend::new(tap.on(TokioPostgresPool::from_pool(pool)));
        Box::new(backend.with_options(options))
    }

    fn resets_settings(&self) -> bool {
        matches!(self.recycling, RecyclingMethod::Clean)
    }
}
