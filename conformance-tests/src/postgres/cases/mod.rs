//! The cases that make sense on PostgreSQL only.

use super::PostgresEnv;
use crate::list::list;

list! {
    ($)
    /// Generates a test for each case that is PostgreSQL's alone:
    /// `postgres_suite!(Postgres::new(driver), runtime)`. As [`suite!`](crate::suite) otherwise.
    postgres_suite calls run_postgres_case with PostgresEnv;

    pool {
        busy_pool_keeps_no_lock
        one_connection_serves_many_locks
        dropped_guard_is_not_pooled
        tampered_connection_is_not_pooled
        dead_connection_is_replaced
        handed_in_stays_usable
    }
    interop {
        names_are_locks_of_raw_clients
        raw_keys_are_locks_of_raw_clients
        transaction_locks_meet_guards
        databases_are_apart
    }
    waiting {
        lets_index_builds_through
        lets_index_builds_through_in_a_hurry
        outlasts_timeouts_of_the_database
        leaves_settings_alone
        holds_without_a_transaction
    }
    server {
        shadowing_functions_have_no_effect
        late_names_the_application
        orphans_are_named
    }
}
