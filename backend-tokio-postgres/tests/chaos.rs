//! Workers that are processes, and whatever may befall them: their sections exclude each other, and
//! are stopped when their lock is lost.

mod driver;

use advisory_conformance_tests::{postgres, runtime};
use deadpool_postgres::RecyclingMethod;
use driver::recycled_by;

/// What the test starts as processes of their own.
const WORKER: &str = "worker";

#[test]
fn worker() {
    postgres::worker(&recycled_by(RecyclingMethod::Fast), runtime::Tokio::new());
}

#[test]
fn sections_exclude_each_other_whatever_happens() {
    postgres::chaos(
        &recycled_by(RecyclingMethod::Fast),
        &runtime::Tokio::new(),
        WORKER,
    );
}
