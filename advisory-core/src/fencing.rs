use std::fmt;

/// A number that is larger than that of every earlier holder of any lock on the same server.
///
/// A holder cannot always be told in time that its lock is lost: its process may be frozen while
/// another one takes over. What it writes after it wakes up can be told, though, by a resource that
/// keeps the largest token it has seen, and refuses smaller ones:
///
/// ```sql
/// UPDATE report SET body = $1, fence = $2 WHERE id = $3 AND fence <= $2
/// ```
///
/// Comes from [`LockGuard::fencing_token`](crate::LockGuard::fencing_token).
///
/// # Limits
///
/// Tokens grow across crashes and restarts of a server, and across promotions, unless a standby
/// that lagged behind is promoted: what it has not received it does not know. They are not
/// consecutive, and say nothing about how often a lock was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FencingToken(i64);

impl FencingToken {
    /// Wraps a number. For backends, and for tokens that come back from where they were kept.
    #[must_use]
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// The number, which fits a `bigint`.
    #[must_use]
    pub const fn as_i64(self) -> i64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
