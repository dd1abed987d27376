//! Hosts that vanish, and processes that are killed: the server frees what they held.

mod driver;

use advisory_conformance_tests::{
    postgres::{self, Postgres},
    runtime,
};
use driver::Sqlx;

/// What the tests start as a process of its own.
const CLIENT: &str = "client";

#[test]
fn client() {
    postgres::client(&Postgres::new(Sqlx), &runtime::Tokio::new());
}

#[tokio::test]
async fn a_vanished_host_loses_its_lock() {
    postgres::a_vanished_host_loses_its_lock(&Postgres::new(Sqlx), CLIENT).await;
}

#[tokio::test]
async fn a_killed_waiter_is_gone_soon() {
    postgres::a_killed_waiter_is_gone_soon(&Postgres::new(Sqlx), CLIENT).await;
}

#[tokio::test]
async fn a_killed_holder_loses_its_lock() {
    postgres::a_killed_holder_loses_its_lock(&Postgres::new(Sqlx), CLIENT).await;
}
