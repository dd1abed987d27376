//! A holder that cannot be told that its lock is lost changes nothing any more.

mod driver;

use advisory_conformance_tests::{
    postgres::{self, Postgres},
    runtime,
};
use driver::Sqlx;

/// What the test starts as a process of its own.
const HOLDER: &str = "holder";

#[test]
fn holder() {
    postgres::holder(&Postgres::new(Sqlx), &runtime::Tokio::new());
}

#[tokio::test]
async fn a_frozen_holder_is_fenced_off() {
    postgres::a_frozen_holder_is_fenced_off(&Postgres::new(Sqlx), HOLDER).await;
}
