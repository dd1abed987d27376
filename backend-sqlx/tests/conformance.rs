//! The suite that every backend must pass, and PostgreSQL's own, on each of sqlx's runtimes.

mod driver;

use advisory_conformance_tests::{postgres::Postgres, postgres_suite, runtime, suite};
use driver::Sqlx;

mod tokio {
    use super::*;

    suite!(Postgres::new(Sqlx), runtime::Tokio::new());

    mod postgres {
        use super::*;
        postgres_suite!(Postgres::new(Sqlx), runtime::Tokio::new());
    }
}

mod smol {
    use super::*;

    suite!(Postgres::new(Sqlx), runtime::Smol);

    mod postgres {
        use super::*;
        postgres_suite!(Postgres::new(Sqlx), runtime::Smol);
    }
}

mod async_std {
    use super::*;

    suite!(Postgres::new(Sqlx), runtime::AsyncStd);

    mod postgres {
        use super::*;
        postgres_suite!(Postgres::new(Sqlx), runtime::AsyncStd);
    }
}
