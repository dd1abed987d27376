//! Workers that are processes, and whatever may befall them: their sections exclude each other, and
//! are stopped when their lock is lost.

mod driver;

use advisory_conformance_tests::{
    postgres::{self, Postgres},
    runtime,
};
use driver::Sqlx;

/// What the test starts as processes of their own.
const WORKER: &str = "worker";

#[test]
fn worker() {
    postgres::worker(&Postgres::new(Sqlx), runtime::Tokio::new());
}

#[test]
fn sections_exclude_each_other_whatever_happens() {
    postgres::chaos(&Postgres::new(Sqlx), &runtime::Tokio::new(), WORKER);
}
