//! The causes of a lost lock: each is seen, in time.

mod driver;

use advisory_conformance_tests::{loss_suite, postgres::Postgres, runtime};
use driver::Sqlx;

mod tokio {
    use super::*;
    loss_suite!(Postgres::new(Sqlx), runtime::Tokio::new());
}

mod smol {
    use super::*;
    loss_suite!(Postgres::new(Sqlx), runtime::Smol);
}
