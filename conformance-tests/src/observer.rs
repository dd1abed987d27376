use std::fmt;

use advisory_core::{LockKey, spi::Claim};
use async_trait::async_trait;

/// Looks at a lock space from outside, never through the library under test.
///
/// It knows a session by the number that the server knows it by
/// ([`SessionId::number`](advisory_core::SessionId::number)).
#[async_trait]
pub trait Observer: fmt::Debug + Send + Sync {
    /// Every lock that is held in the space, one entry per session, key and mode.
    async fn held(&self) -> Vec<SeenLock>;

    /// How many sessions wait for the key, in any mode.
    async fn waiters(&self, key: LockKey) -> usize;

    /// The sessions that are alive, idle connections of pools among them. The observer's own are
    /// not.
    async fn sessions(&self) -> Vec<i64>;

    /// Ends a session by force, as an administrator would, and returns when it has ended.
    async fn terminate(&self, session: i64);
}

/// A lock that is held, as the observer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenLock {
    /// What is held.
    pub claim: Claim,
    /// Who holds it.
    pub session: i64,
}
