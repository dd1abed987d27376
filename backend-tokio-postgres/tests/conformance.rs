//! The suite that every backend must pass, and PostgreSQL's own, on tokio.

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
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
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

#[derive(Debug)]
struct Deadpool {
    recycling: RecyclingMethod,
}

impl Deadpool {
    fn pool(&self, url: &str, connections: usize) -> Pool {
        let recycling_method = self.recycling.clone();
        let config = ManagerConfig { recycling_method };
        let url = url.parse().expect("a URL of the fixture");
        Pool::builder(Manager::from_config(url, NoTls, config))
            .max_size(connections)
            .build()
            .expect("no timeout needs a runtime")
    }
}

#[async_trait]
impl Driver for Deadpool {
    async fn backend(&self, url: &str, connections: usize) -> Box<dyn LockBackend> {
        let backend = TokioPostgresBackend::from_pool(self.pool(url, connections));
        Box::new(backend.with_options(all_of(connections)))
    }

    async fn tapped(&self, url: &str, connections: usize, tap: &Tap) -> Box<dyn LockBackend> {
        let pool = TokioPostgresPool::from_pool(self.pool(url, connections));
        let backend = PostgresBackend::new(tap.on(pool));
        Box::new(backend.with_options(all_of(connections)))
    }
}

/// The suite's pools are for locks alone.
fn all_of(connections: usize) -> PostgresOptions {
    PostgresOptions::new().max_sessions(connections)
}
