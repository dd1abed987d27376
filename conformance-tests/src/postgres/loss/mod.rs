//! The causes of a lost lock, each brought about on a server of PostgreSQL's own kind of trouble,
//! and what it costs to see them.

mod env;
mod frozen;
mod running;

use std::time::{Duration, Instant};

pub use self::{
    env::{LossEnv, run_loss_case},
    frozen::{a_frozen_holder_is_fenced_off, holder},
};
use crate::list::list;

list! {
    ($)
    /// Generates a test for each cause of a lost lock: `loss_suite!(Postgres::new(driver), runtime)`.
    /// As [`suite!`](crate::suite) otherwise.
    loss_suite calls run_loss_case with LossEnv;

    backend {
        killed_stops_a_section
    }
    restart {
        in_good_order
        after_a_crash
        makes_another_server
    }
    failover {
        to_a_standby
    }
    idle_timeout {
        is_switched_off
        set_later_is_told
        set_later_ends_a_guard_that_nobody_watches
    }
    network {
        cut_stops_a_section
        cut_is_told_to_whoever_has_a_guard
        silence_stops_a_section
        silence_stops_a_scope
        silence_is_told_to_whoever_has_a_guard
    }
    cost {
        of_a_short_section_is_nothing
        of_a_long_section_is_empty_statements
    }
}

const NAME: &str = "imports:run";

/// How soon a closed connection is seen, by default.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// What a busy machine may add to anything.
const MARGIN: Duration = Duration::from_secs(2);

/// Fails if it does not end in time, give or take what the machine adds.
async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> T {
    let started = Instant::now();
    let output = work.await;
    let took = started.elapsed();
    assert!(took <= limit + MARGIN, "took {took:?}, not {limit:?}");
    output
}
