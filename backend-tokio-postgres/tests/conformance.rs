//! The suite that every backend must pass, and PostgreSQL's own, on tokio.

mod driver;

use advisory_conformance_tests::{Sharing, postgres_suite, runtime, suite};
use deadpool_postgres::RecyclingMethod;
use driver::recycled_by;

mod tokio {
    use super::*;

    suite!(recycled_by(RecyclingMethod::Fast), runtime::Tokio::new());

    mod postgres {
        use super::*;
        postgres_suite!(recycled_by(RecyclingMethod::Fast), runtime::Tokio::new());
    }
}

/// What a user's pool does at a checkout must not matter.
mod verified {
    use super::*;
    postgres_suite!(
        recycled_by(RecyclingMethod::Verified),
        runtime::Tokio::new()
    );
}

mod cleaned {
    use super::*;
    postgres_suite!(recycled_by(RecyclingMethod::Clean), runtime::Tokio::new());
}

/// All locks of a manager on one session.
mod sharing {
    use super::*;
    suite!(
        Sharing(recycled_by(RecyclingMethod::Fast)),
        runtime::Tokio::new()
    );
}
