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

/// What the server knows of a client that has said nothing yet: a pooler has not told it.
const CLIENTS_ARE_SEEN: &[&str] = &["owned_pool::connections_are_named_unless_the_user_did"];

/// What is bounded by settings of the server's: they are about the pooler's host, which is there.
const HOSTS_ARE_BOUNDED: &[&str] = &["dead_host::a_vanished_host_loses_its_lock"];

/// Whether the server's session ends with its client's connection.
pub(super) fn sessions_end() -> bool {
    PoolMode::of_all().is_none()
}

/// Whether a case, or a test of a PostgreSQL backend, is about what does not hold with whatever
/// `ADVISORY_POOLER` puts before the servers.
#[must_use]
pub fn left_out(case: &str) -> bool {
    let lists = [SESSIONS_END, CLIENTS_ARE_SEEN, HOSTS_ARE_BOUNDED];
    PoolMode::of_all().is_some() && lists.iter().any(|list| list.contains(&case))
}
