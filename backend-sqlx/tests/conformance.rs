//! The suite that every backend must pass, and PostgreSQL's own, on each of sqlx's runtimes.

use advisory_backend_sqlx::{SqlxBackend, SqlxPool};
use advisory_conformance_tests::{
    postgres::{Driver, Postgres, Tap},
    postgres_suite, runtime, suite,
};
use advisory_core::{
    LockBackend,
    postgres::{PostgresBackend, PostgresOptions},
};
use async_trait::async_trait;
use sqlx::{PgPool, postgres::PgPoolOptions};

mod tokio {
    use super::*;

    suite!(Postgres::new(Sqlx), runtime::Tokio::new());

    mod postgres {
        use super::*;
        postgres_suite!(Postgres::new(Sqlx), runtime::Tokio::new());
    }
}

mod smol {
    use super::*;

    suite!(Postgres::new(Sqlx), runtime::Smol);

    mod postgres {
        use super::*;
        postgres_suite!(Postgres::new(Sqlx), runtime::Smol);
    }
}

mod async_std {
    use super::*;

    suite!(Postgres::new(Sqlx), runtime::AsyncStd);

    mod postgres {
        use super::*;
        postgres_suite!(Postgres::new(Sqlx), runtime::AsyncStd);
    }
}

#[derive(Debug)]
struct Sqlx;

impl Sqlx {
    fn pool(url: &str, connections: usize) -> PgPool {
        PgPoolOptions::new()
            .max_connections(connections.try_into().expect("a small number"))
            .connect_lazy(url)
            .expect("a URL of the fixture")
    }
}

#[async_trait]
impl Driver for Sqlx {
    async fn backend(&self, url: &str, connections: usize) -> Box<dyn LockBackend> {
        let backend = SqlxBackend::from_pool(Self::pool(url, connections));
        Box::new(backend.with_options(all_of(connections)))
    }

    async fn tapped(&self, url: &str, connections: usize, tap: &Tap) -> Box<dyn LockBackend> {
        let pool = SqlxPool::from_pool(Self::pool(url, connections));
        let backend = PostgresBackend::new(tap.on(pool));
        Box::new(backend.with_options(all_of(connections)))
    }
}

/// The suite's pools are for locks alone.
fn all_of(connections: usize) -> PostgresOptions {
    PostgresOptions::new().max_sessions(connections)
}
