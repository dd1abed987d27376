//! The suite that every backend must pass, and PostgreSQL's own, on tokio.

use std::time::Duration;

use advisory_backend_tokio_postgres::{TokioPostgresBackend, TokioPostgresPool};
use advisory_conformance_tests::{
    postgres::{Driver, Postgres, Tap},
    postgres_suite, runtime, suite,
};
use advisory_core::{
    LockBackend,
    postgres::{PostgresBackend, PostgresOptions},
};
use async_trait::async_trait;
use deadpool_postgres::{Manager, ManagerConfig, Pool, PoolBuilder, RecyclingMethod, Runtime};
use tokio_postgres::NoTls;

mod tokio {
    use super::*;

    suite!(recycled_by(RecyclingMethod::Fast), runtime::Tokio::new());

    mod postgres {
        use super::*;
        postgres_suite!(recycled_by(RecyclingMethod::Fast), runtime::Tokio::new());
    }
}

/// What a user's pool does at a checkout must not matter.
mod verified {
    use super::*;
    postgres_suite!(
        recycled_by(RecyclingMethod::Verified),
        runtime::Tokio::new()
    );
}

mod cleaned {
    use super::*;
    postgres_suite!(recycled_by(RecyclingMethod::Clean), runtime::Tokio::new());
}

fn recycled_by(recycling: RecyclingMethod) -> Postgres {
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
