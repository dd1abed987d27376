use std::time::Duration;

use super::settings::DeadHost;

/// How a PostgreSQL backend treats its connections.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use advisory_core::postgres::PostgresOptions;
///
/// let options = PostgresOptions::new()
///     .dead_host_within(Duration::from_secs(10))
///     .max_sessions(4);
/// # drop(options);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PostgresOptions {
    pub(super) dead_host: Option<DeadHost>,
    pub(super) max_sessions: Option<usize>,
    pub(super) session_within: Duration,
    pub(super) keeping: Keeping,
}

/// How a server session is kept for as long as locks are held on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeping {
    /// By the connection, which is looked into first.
    Checked,
    /// By the connection.
    Trusted,
    /// By a transaction.
    Pinned,
}

impl PostgresOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            dead_host: Some(DeadHost::within(Duration::from_secs(30))),
            max_sessions: None,
            session_within: Duration::from_secs(30),
            keeping: Keeping::Checked,
        }
    }

    /// How long the server may take to notice that the host of a lock's holder is gone, and to free
    /// the lock; 30 seconds by default, in whole seconds, from one second to a day.
    ///
    /// For that a connection's TCP settings on the server (`tcp_keepalives_*`, `tcp_user_timeout`)
    /// are set when a lock is first held on it, and stay set when it goes back to its pool. Through
    /// a proxy they are about the proxy's connection. A Unix socket needs none of it.
    #[must_use]
    pub fn dead_host_within(mut self, bound: Duration) -> Self {
        self.dead_host = Some(DeadHost::within(bound));
        self
    }

    /// Leaves the TCP settings of the server alone. A holder whose host vanishes then keeps its
    /// locks for as long as the server's own settings have it: by default more than two hours.
    #[must_use]
    pub fn dead_host_unbounded(mut self) -> Self {
        self.dead_host = None;
        self
    }

    /// How many sessions, holding or waiting, may be in use at once; at least one.
    ///
    /// By default all connections of a pool that the backend has opened for itself, and three
    /// quarters of one that was handed in: locks must not take the last connection from the queries
    /// for whose sake they are held. A pool of one can spare none, so there it is one.
    #[must_use]
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = Some(sessions);
        self
    }

    /// How long to wait for a session to be free when the greatest number is in use, before
    /// [`Error::PoolExhausted`](crate::Error::PoolExhausted); 30 seconds by default. The pool's own
    /// limit comes on top.
    ///
    /// As long may it take to find out what the server is, and whether there is a pooler before it; then
    /// the first lock, or [`LockManager::check`](crate::LockManager::check), ends as
    /// [`Error::Timeout`](crate::Error::Timeout). Some poolers are found out by their not answering for
    /// two seconds: if this is not longer, they show as that timeout instead of
    /// [`Error::SessionNotPinned`](crate::Error::SessionNotPinned).
    #[must_use]
    pub fn session_within(mut self, limit: Duration) -> Self {
        self.session_within = limit;
        self
    }

    /// Pinned mode: keeps each session's locks inside a transaction that stays open for as long as the
    /// session holds any, for connections that lead through a pooler in transaction mode.
    ///
    /// Such a pooler gives a client a server session for one transaction at a time. A lock that is
    /// taken outside of one stays behind on a session that the next client gets; that is why
    /// without this option a pooler in that mode is refused, as
    /// [`Error::SessionNotPinned`](crate::Error::SessionNotPinned). In statement mode no transaction
    /// is possible, and pinned mode is refused as well.
    ///
    /// - The locks are session-level ones all the same: they are released one by one, and a wait that
    ///   ends in vain, or in a deadlock, takes none of the others with it.
    /// - The transaction is `READ COMMITTED`, writes nothing, and holds no snapshot while it is idle, so
    ///   then it is in the way of no vacuum and no index build. One that waits for another lock while it
    ///   holds one is: a build that begins meanwhile waits until all is given back.
    ///   `idle_in_transaction_session_timeout` and `transaction_timeout` are off inside it, and so are
    ///   the timeouts for statements and locks.
    /// - A section takes one round trip more than without: the transaction's end. No statement is
    ///   prepared by name, so poolers that know nothing of those will do.
    /// - A [fencing token](crate::LockGuard::fencing_token) has to be on the server's disk before it is
    ///   handed out, which the end of the transaction cannot see to. PostgreSQL 17 and newer can be
    ///   told to; on older ones, and wherever there are synchronous standbys, a transaction on a
    ///   connection beside the pool does it, so that costs a few milliseconds.
    /// - The bound for a [dead host](Self::dead_host_within) is about the pooler's host. That a
    ///   client's host is gone is the pooler's to notice.
    ///
    /// It works without a pooler, and in session mode, too. A pooler must not lend a session again
    /// that a client has left in the middle of a transaction, unless it ends or cleans it;
    /// [`LockManager::check`](crate::LockManager::check) tries that.
    #[must_use]
    pub fn pinned(mut self) -> Self {
        self.keeping = Keeping::Pinned;
        self
    }

    /// Spares the look for what would give a lock to more than one owner: a pooler, or several servers
    /// behind one address.
    ///
    /// By default the first session, and the next one after a lock was found to be gone, opens
    /// another connection for a moment and finds out whether the server keeps the two apart, and
    /// frees what one of them held when it has gone. A pooler in session mode that has only one server
    /// session to lend cannot be looked into that way; whoever knows that it is in session mode can say
    /// so here.
    ///
    /// Behind a pooler in transaction or statement mode, or one that leaves a client's locks on a
    /// session that it lends again, or where connections lead to several servers, locks then exclude
    /// nobody, and nothing reports that.
    #[must_use]
    pub fn trust_session_pooling(mut self) -> Self {
        self.keeping = Keeping::Trusted;
        self
    }

    /// How many sessions there may be on a pool that was handed in with so many connections, or on
    /// one of the backend's own; `None` is without limit.
    pub(super) fn sessions(&self, borrowed: Option<usize>) -> Option<usize> {
        let by_default = borrowed.map(|size| size - size.div_ceil(4));
        self.max_sessions
            .or(by_default)
            .map(|sessions| sessions.max(1))
    }
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_borrowed_pool_keeps_a_connection_for_others() {
        let sessions = |size| PostgresOptions::new().sessions(Some(size));
        for size in 2..100 {
            assert!(sessions(size).is_some_and(|sessions| (1..size).contains(&sessions)));
        }
        assert_eq!(sessions(1), Some(1));
        assert_eq!(sessions(10), Some(7));
    }

    #[test]
    fn a_number_that_was_asked_for_counts_for_every_pool() {
        let options = PostgresOptions::new().max_sessions(0);
        assert_eq!(options.sessions(None), Some(1));
        assert_eq!(options.sessions(Some(10)), Some(1));
        assert_eq!(PostgresOptions::new().sessions(None), None);
    }
}
