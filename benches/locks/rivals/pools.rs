//! What a user of each driver has without this library.

use std::str::FromStr;

use deadpool_postgres::{Manager, ManagerConfig, RecyclingMethod};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio_postgres::{Config, NoTls, Row};

use super::Place;

pub(super) const RELEASE: &str = "SELECT pg_advisory_unlock($1)";

pub(super) const TRY: &str = "SELECT pg_try_advisory_lock($1)";

/// The statement that takes a lock: who need not wait for it, tries.
pub(super) fn acquire(place: &Place) -> &'static str {
    if place.contended {
        "SELECT pg_advisory_lock($1) IS NOT NULL"
    } else {
        TRY
    }
}

pub(super) fn is_done(row: Result<Row, tokio_postgres::Error>) -> bool {
    row.expect("an answer").get(0)
}

pub(super) fn config(place: &Place) -> Config {
    let mut config = Config::from_str(&place.url).expect("a URL");
    config.application_name(&place.application_name);
    config
}

/// A checkout and a return cost no round trip.
pub(super) fn deadpool(place: &Place) -> deadpool_postgres::Pool {
    let recycling = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    deadpool_postgres::Pool::builder(Manager::from_config(config(place), NoTls, recycling))
        .max_size(place.connections)
        .build()
        .expect("a pool")
}

pub(super) async fn query_deadpool(pool: &deadpool_postgres::Pool) {
    let client = pool.get().await.expect("a connection");
    let query = client.prepare_cached("SELECT 1").await.expect("valid SQL");
    client.query_one(&query, &[]).await.expect("an answer");
}

/// A checkout and a return cost a round trip each, as they do by default.
pub(super) fn sqlx(place: &Place) -> sqlx::PgPool {
    let options = PgConnectOptions::from_str(&place.url).expect("a URL");
    let connections = place.connections.try_into().expect("a small number");
    PgPoolOptions::new()
        .max_connections(connections)
        .connect_lazy_with(options.application_name(&place.application_name))
}

pub(super) async fn query_sqlx(pool: &sqlx::PgPool) {
    let query = sqlx::query("SELECT 1").execute(pool);
    query.await.expect("an answer");
}
