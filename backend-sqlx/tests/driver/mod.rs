//! The backend, as the suites have to know it.

use std::time::Duration;

use advisory_backend_sqlx::{SqlxBackend, SqlxPool};
use advisory_conformance_tests::postgres::{Driver, Tap};
use advisory_core::{
    LockBackend,
    postgres::{PostgresBackend, PostgresOptions},
};
use async_trait::async_trait;
use sqlx::{PgPool, postgres::PgPoolOptions};

/// How long a tapped pool lets somebody wait.
const CHECKOUT_LIMIT: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(crate) struct Sqlx;

#[async_trait]
impl Driver for Sqlx {
    async fn backend(
        &self,
        url: &str,
        connections: usize,
        options: PostgresOptions,
    ) -> Box<dyn LockBackend> {
        let pool = connect(pool_of(connections), url);
        Box::new(SqlxBackend::from_pool(pool).with_options(options))
    }

    async fn owned(
        &self,
        url: &str,
        connections: usize,
        options: PostgresOptions,
    ) -> Box<dyn LockBackend> {
        let url = url.parse().expect("a URL of the fixture");
        let backend = SqlxBackend::connect_pool(url, pool_of(connections)).await;
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
        let pool = connect(pool_of(connections).acquire_timeout(CHECKOUT_LIMIT), url);
        let backend = PostgresBackend::new(tap.on(SqlxPool::from_pool(pool)));
        Box::new(backend.with_options(options))
    }
}

fn pool_of(connections: usize) -> PgPoolOptions {
    PgPoolOptions::new().max_connections(connections.try_into().expect("a small number"))
}

fn connect(pool: PgPoolOptions, url: &str) -> PgPool {
    pool.connect_lazy(url).expect("a URL of the fixture")
}
