use std::env;

use super::PoolMode;

/// What ends with its client's connection on a server alone: a pooler keeps its own connection to the
/// server for the next client.
const SESSIONS_END: &[&str] = &[
    "pool::dropped_guard_is_not_pooled",
    "pool::session_goes_back",
    "pool::tampered_connection_is_not_pooled",
    "spi_backends::leave_no_session_behind",
    "spi_sessions::free_all_they_hold_when_dropped",
];

/// What counts a manager's sessions on the server: that of the connection by which it looks for
/// poolers stays behind as well.
const SESSIONS_ARE_FEW: &[&str] = &[
    "impostors::look_needs_room_for_two",
    "nesting::pool_of_one_is_enough",
    "pool::busy_pool_keeps_no_lock",
    "queueing::who_comes_during_a_release_gets_the_session",
];

/// What the server knows of a client that has said nothing yet: a pooler has not told it.
const CLIENTS_ARE_SEEN: &[&str] = &["owned_pool::connections_are_named_unless_the_user_did"];

/// What is bounded by settings of the server's: they are about the pooler's host, which is there.
const HOSTS_ARE_BOUNDED: &[&str] = &["dead_host::a_vanished_host_loses_its_lock"];

/// What looks at all statements of the server: a pooler has some of its own, to reset a session.
const STATEMENTS_ARE_OURS: &[&str] = &["cost::of_a_short_section_is_nothing"];

/// What takes a few statements, and a few more in pinned mode.
const STATEMENTS: &[&str] = &[
    "server_log::an_uncontended_section_is_two_statements",
    "statements::uncontended_section_is_two",
];

/// What cannot be in a transaction: an idle session that is timed out, and an index build on the
/// lock's own session. That of another session has a case which is not left out.
const OUTSIDE_OF_TRANSACTIONS: &[&str] = &[
    "idle_timeout::set_later_ends_a_guard_that_nobody_watches",
    "settings::idle_timeout_is_off_while_held",
    "waiting::lets_index_builds_through",
    "waiting::lets_index_builds_through_in_a_hurry",
];

/// What tells owners that come one after the other apart by their server session, which a pooler in
/// transaction mode lends to both.
const OWNERS_ARE_SESSIONS: &[&str] = &["leaking::unpolled_future_is_a_stranger"];

/// What puts a pooler of its own before the server, which must be ours.
const BESIDE_A_POOLER: &str = "poolers::";

/// What plays a pooler of its own, or looks for one without being pinned.
const POOLERS_OF_THEIR_OWN: &[&str] = &[
    "acquiring::while_it_looks_for_a_pooler",
    "impostors::transaction_pooler_is_refused",
    "impostors::transaction_pooler_gives_trusted_locks_to_two",
    "impostors::transaction_pooler_keeps_pinned_locks",
    "impostors::resetting_pooler_is_refused",
    "impostors::resetting_pooler_gives_trusted_locks_to_two",
    "impostors::resetting_pooler_keeps_pinned_locks",
    "impostors::pinning_proxy_is_refused",
    "impostors::pinning_proxy_keeps_trusted_locks",
    "impostors::pinning_proxy_keeps_pinned_locks",
    "impostors::islands_are_refused",
    "impostors::islands_give_trusted_locks_to_two",
    "impostors::poolers_are_looked_for_once",
    "impostors::poolers_are_looked_for_again_after_a_loss",
];

/// Behind any pooler.
const BY_POOLERS: [&[&str]; 5] = [
    SESSIONS_END,
    SESSIONS_ARE_FEW,
    STATEMENTS_ARE_OURS,
    CLIENTS_ARE_SEEN,
    HOSTS_ARE_BOUNDED,
];

/// Besides, in transaction mode.
const BY_TRANSACTIONS: [&[&str]; 4] = [
    STATEMENTS,
    OUTSIDE_OF_TRANSACTIONS,
    OWNERS_ARE_SESSIONS,
    POOLERS_OF_THEIR_OWN,
];

/// Whether a case, or a test of a PostgreSQL backend, is about what does not hold with whatever
/// `ADVISORY_POOLER` puts before the servers, or on a server that `DATABASE_URL` names.
#[must_use]
pub fn left_out(case: &str) -> bool {
    if case.starts_with(BESIDE_A_POOLER) && env::var_os("DATABASE_URL").is_some() {
        return true;
    }
    let on = |lists: &[&[&str]]| lists.iter().any(|list| list.contains(&case));
    match PoolMode::of_all() {
        None => false,
        Some(PoolMode::Session) => on(&BY_POOLERS),
        Some(PoolMode::Transaction | PoolMode::Statement) => {
            on(&BY_POOLERS) || on(&BY_TRANSACTIONS)
        }
    }
}

/// Whether the server's session ends with its client's connection.
pub(super) fn sessions_end() -> bool {
    PoolMode::of_all().is_none()
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::{
        super::{cancellation, cases, loss},
        *,
    };
    use crate::run::Case;

    fn names<E>(list: &[Case<E>]) -> impl Iterator<Item = &'static str> {
        list.iter().map(|case| case.name)
    }

    fn is_case(name: &str) -> bool {
        let mut cases = names(crate::cases::LIST)
            .chain(names(crate::every_poll::LIST))
            .chain(names(cases::LIST))
            .chain(names(cancellation::LIST))
            .chain(names(loss::LIST));
        cases.any(|case| case == name)
    }

    /// Whether a PostgreSQL backend has a test of that name, in a file of that name.
    fn is_test(name: &str) -> bool {
        let Some((file, test)) = name.split_once("::") else {
            return false;
        };
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        ["backend-sqlx", "backend-tokio-postgres"]
            .map(|backend| workspace.join(backend).join(format!("tests/{file}.rs")))
            .iter()
            .filter_map(|file| fs::read_to_string(file).ok())
            .any(|text| text.contains(&format!("fn {test}()")))
    }

    #[test]
    fn what_is_left_out_is_there() {
        let lists = BY_POOLERS.iter().chain(&BY_TRANSACTIONS).copied();
        for name in lists.flatten() {
            assert!(is_case(name) || is_test(name), "there is no {name}");
        }
        let mut cases = names(cases::LIST);
        assert!(cases.any(|case| case.starts_with(BESIDE_A_POOLER)));
    }
}
