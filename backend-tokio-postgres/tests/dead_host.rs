//! Hosts that vanish, and processes that are killed: the server frees what they held.

mod driver;

use advisory_conformance_tests::{postgres, runtime};
use deadpool_postgres::RecyclingMethod;
use driver::recycled_by;

/// What the tests start as a process of its own.
const CLIENT: &str = "client";

#[test]
fn client() {
    postgres::client(&recycled_by(RecyclingMethod::Fast), &runtime::Tokio::new());
}

#[tokio::test]
async fn a_vanished_host_loses_its_lock() {
    postgres::a_vanished_host_loses_its_lock(&recycled_by(RecyclingMethod::Fast), CLIENT).await;
}

#[tokio::test]
async fn a_killed_waiter_is_gone_soon() {
    postgres::a_killed_waiter_is_gone_soon(&recycled_by(RecyclingMethod::Fast), CLIENT).await;
}

#[tokio::test]
async fn a_killed_holder_loses_its_lock() {
    postgres::a_killed_holder_loses_its_lock(&recycled_by(RecyclingMethod::Fast), CLIENT).await;
}
