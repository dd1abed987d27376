//! Thousands of acquisitions, most of which are cancelled, killed or cut: nothing is left of them.

mod driver;

use advisory_conformance_tests::{postgres, runtime};
use deadpool_postgres::RecyclingMethod;
use driver::recycled_by;

#[test]
fn leaves_nothing_behind() {
    postgres::storm(recycled_by(RecyclingMethod::Fast), runtime::Tokio::new());
}
