//! The cases that make sense on PostgreSQL only.

mod inspected;
mod role;

use std::{env, sync::Arc};

use advisory_core::LockManager;

use super::{PoolMode, PostgresEnv};
use crate::{
    list::list,
    outcome::victims,
    sync::{DEADLINE, Rendezvous},
};

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
        lends_to_sections
        of_one_tells_that_it_is_exhausted
        keeps_connections_for_others
        exhausted_by_locks_ends_in_time
        exhausted_by_others_ends_in_time
        session_goes_back
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
        lets_index_builds_through_a_crowd
        outlasts_timeouts_of_the_database
        outlasts_timeouts_of_the_role
        leaves_settings_alone
        holds_without_a_transaction
        finds_deadlocks_of_a_patient_server
        cancelled_leaves_outer_locks
        with_thousands_of_locks_held
    }
    without_plpgsql {
        waits_end_with_the_lock
        waits_end_by_timeout
        deadlocks_are_found
    }
    settings {
        dead_hosts_are_bounded
        dead_hosts_are_bounded_as_asked_for
        dead_hosts_are_bounded_after_a_wait
        dead_hosts_are_left_alone_on_request
        idle_timeout_is_off_while_held
    }
    poolers {
        transaction_mode_is_refused
        transaction_mode_works_when_pinned
        session_mode_works
        session_mode_without_reset_is_refused
        statement_mode_is_refused
        two_own_a_lock_where_nobody_looks
        a_session_to_spare_is_needed_to_look
        pinned_clients_take_turns
        pinned_and_cancelled_leaves_no_transaction
    }
    statements {
        uncontended_section_is_two
        reentry_is_none
        local_miss_is_none
        many_keys_are_few_kinds
    }
    impostors {
        products_are_refused
        transaction_pooler_is_refused
        transaction_pooler_gives_trusted_locks_to_two
        transaction_pooler_keeps_pinned_locks
        resetting_pooler_is_refused
        resetting_pooler_gives_trusted_locks_to_two
        resetting_pooler_keeps_pinned_locks
        pinning_proxy_is_refused
        pinning_proxy_keeps_trusted_locks
        pinning_proxy_keeps_pinned_locks
        look_needs_room_for_two
        islands_are_refused
        islands_give_trusted_locks_to_two
        poolers_are_looked_for_once
        poolers_are_looked_for_again_after_a_loss
    }
    server {
        shadowing_functions_have_no_effect
        late_names_the_application
        orphans_are_named
        orphans_are_listed
        holders_are_named_where_the_view_is_closed
        check_up_counts_everybodys_connections
        standby_is_refused
        standbys_confirm_pinned_tokens
    }
}

/// What the server calls the session of a holder that leaves it alone.
fn idle() -> &'static str {
    if PoolMode::pins_all() {
        "idle in transaction"
    } else {
        "idle"
    }
}

/// How many owners are told that they wait for each other.
async fn victims_of_a_cycle(env: &PostgresEnv, locks: &LockManager) -> usize {
    let both_inside = Arc::new(Rendezvous::of(2));
    let tasks = [("a", "b"), ("b", "a")].map(|(outer, inner)| {
        let (locks, both_inside) = (locks.clone(), Arc::clone(&both_inside));
        env.spawn(async move {
            let (outer, inner) = (locks.named(outer), locks.named(inner));
            let crossing = outer.with(async || {
                both_inside.reached().await;
                inner.with_timeout(DEADLINE, async || ()).await
            });
            crossing.await.unwrap()
        })
    });
    victims(tasks).await
}

/// How often a case that says so does its work: as often as `ADVISORY_CASE_REPEATS` says, which
/// may take long, or by default a few times.
fn repeats(by_default: usize) -> usize {
    match env::var("ADVISORY_CASE_REPEATS") {
        Ok(repeats) => repeats.parse().expect("ADVISORY_CASE_REPEATS is a number"),
        Err(_) => by_default,
    }
}
