//! Thousands of acquisitions, most of which are cancelled, killed or cut: nothing is left of them.

mod driver;

use advisory_conformance_tests::{
    postgres::{self, Postgres},
    runtime,
};
use driver::Sqlx;

#[test]
fn leaves_nothing_behind() {
    postgres::storm(Postgres::new(Sqlx), runtime::Tokio::new());
}
