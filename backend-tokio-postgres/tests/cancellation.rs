//! What is left behind by those who go away in the middle: nothing.

mod driver;

use advisory_conformance_tests::{cancellation_suite, every_poll_suite, runtime};
use deadpool_postgres::RecyclingMethod;
use driver::recycled_by;

mod tokio {
    use super::*;
    cancellation_suite!(recycled_by(RecyclingMethod::Fast), runtime::Tokio::new());

    mod every_poll {
        use super::*;
        every_poll_suite!(recycled_by(RecyclingMethod::Fast), runtime::Tokio::new());
    }
}
