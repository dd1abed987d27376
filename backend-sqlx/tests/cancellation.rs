//! What is left behind by those who go away in the middle: nothing.

mod driver;

use advisory_conformance_tests::{
    cancellation_suite, every_poll_suite, postgres::Postgres, runtime,
};
use driver::Sqlx;

mod tokio {
    use super::*;
    cancellation_suite!(Postgres::new(Sqlx), runtime::Tokio::new());

    mod every_poll {
        use super::*;
        every_poll_suite!(Postgres::new(Sqlx), runtime::Tokio::new());
    }
}

mod smol {
    use super::*;
    cancellation_suite!(Postgres::new(Sqlx), runtime::Smol);

    mod every_poll {
        use super::*;
        every_poll_suite!(Postgres::new(Sqlx), runtime::Smol);
    }
}

mod async_std {
    use super::*;
    cancellation_suite!(Postgres::new(Sqlx), runtime::AsyncStd);

    mod every_poll {
        use super::*;
        every_poll_suite!(Postgres::new(Sqlx), runtime::AsyncStd);
    }
}
