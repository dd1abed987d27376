//! A holder that cannot be told that its lock is lost changes nothing any more.

mod driver;

use advisory_conformance_tests::{postgres, runtime};
use deadpool_postgres::RecyclingMethod;
use driver::recycled_by;

/// What the test starts as a process of its own.
const HOLDER: &str = "holder";

#[test]
fn holder() {
    postgres::holder(&recycled_by(RecyclingMethod::Fast), &runtime::Tokio::new());
}

#[tokio::test]
async fn a_frozen_holder_is_fenced_off() {
    postgres::a_frozen_holder_is_fenced_off(&recycled_by(RecyclingMethod::Fast), HOLDER).await;
}
