//! The causes of a lost lock: each is seen, in time.

mod driver;

use advisory_conformance_tests::{loss_suite, runtime};
use deadpool_postgres::RecyclingMethod;
use driver::recycled_by;

mod tokio {
    use super::*;
    loss_suite!(recycled_by(RecyclingMethod::Fast), runtime::Tokio::new());
}
