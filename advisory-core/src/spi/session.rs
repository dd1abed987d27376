use std::{fmt, time::Duration};

use async_trait::async_trait;

use super::{Claim, Request, Turn, Waited};
use crate::{FencingToken, Holder, LockKey, Result};

/// One owner of locks: on PostgreSQL, one connection.
///
/// # The contract
///
/// - **Dropping a session frees everything it holds**, at once or as soon as the server notices,
///   without a runtime, without blocking and without panicking. It also ends a wait that was under
///   way: no later than at the end of its [`Turn`]. What is dropped never goes back to a pool;
///   only [`recycle`](Self::recycle) gives a connection back.
/// - **A lost session stays lost.** Every call on it fails, and nothing reconnects behind the core's
///   back, for a new connection does not own what the old one did.
/// - **After an `Err`** the session either is lost ([`is_lost`](Self::is_lost) says so), or it
///   holds none of the claims that the failed call named, those to be unlocked included, and all
///   other claims as before. Where that cannot be made sure of, it is lost.
///
/// # For callers
///
/// The methods take `&mut self`: one call at a time. A call whose future is dropped leaves the
/// session in a state that only dropping it can mend; the core keeps the future instead, and
/// polls it to its end.
///
/// # For implementers
///
/// Errors are mapped in the backend: a driver's error becomes the variant of
/// [`Error`](crate::Error) that says what it means here, and
/// [`Backend`](crate::Error::Backend) if it means nothing special.
///
/// A future that is pending has to wake whoever polled it last: it is not polled again before, however
/// many callers come by.
#[async_trait]
pub trait LockSession: fmt::Debug + Send + 'static {
    /// Who this session is to the server and to others that look at it; `None` until the server has
    /// answered a batch or a wait. It does not change while the session holds a claim.
    fn id(&self) -> Option<SessionId>;

    /// Whether the session is known to have ended. No I/O: it reports what the driver, or the last
    /// call, has noticed. `false` is no proof of life.
    fn is_lost(&self) -> bool;

    /// Whether [`is_lost`](Self::is_lost) turns true by itself when the connection closes, soon and
    /// without a call: whether the driver listens while it is asked nothing. Where it does not, the
    /// core probes.
    fn notices_loss(&self) -> bool;

    /// Takes and gives back claims without waiting for other owners, in the order of the batch, in
    /// one round trip, and answers each request in its place.
    ///
    /// A miss (`false`) of a `TryLock` is not an error. `false` for an `Unlock` means that the
    /// session did not hold the claim, so somebody else interfered with it; what to make of that
    /// is the core's business.
    ///
    /// # Errors
    ///
    /// - [`LockTableFull`](crate::Error::LockTableFull): the server has no memory for another lock.
    /// - [`SessionNotPinned`](crate::Error::SessionNotPinned): the answer came from another server
    ///   session than before.
    /// - [`NotPrimary`](crate::Error::NotPrimary): the server has become, or always was, a standby.
    /// - [`Backend`](crate::Error::Backend): everything else.
    async fn submit(&mut self, batch: &[Request]) -> Result<Vec<bool>>;

    /// How long a turn has to last for the server to see that it is part of a deadlock, where that is
    /// not at once. The turns of a session that may be part of one can be that long, whatever
    /// [`Turn::patience`] says, if [`Turn::patience_in_a_cycle`] allows.
    fn finds_deadlocks_within(&self) -> Option<Duration> {
        None
    }

    /// Waits for the claim, for one [`Turn`]: as long as the session sees fit, and no longer than
    /// [`Turn::patience`] and [`Turn::LONGEST`].
    ///
    /// Waiting goes by turns so that a session that holds other locks can release one of them in
    /// between, and so that a waiter does not stand in the server's way for long. When
    /// [`Waited::TurnOver`] comes back the claim is not held, nothing is queued on the server, and
    /// the core calls again if its caller still has patience.
    ///
    /// The first call of a wait comes after a `TryLock` that missed.
    ///
    /// # Errors
    ///
    /// As [`submit`](Self::submit), and [`Deadlock`](crate::Error::Deadlock): this owner waits for
    /// one that waits for it. Nothing was acquired, and what the session held it still holds.
    async fn wait(&mut self, claim: Claim, turn: Turn) -> Result<Waited>;

    /// Who holds the key, in any mode, as far as this session may see.
    ///
    /// # Errors
    ///
    /// [`Backend`](crate::Error::Backend) if the server cannot be asked.
    async fn holders(&mut self, key: LockKey) -> Result<Vec<Holder>>;

    /// A number that is larger than every one that this server has given to any session before,
    /// also across its crashes and restarts. Asked for while the session holds a claim; that order
    /// is what makes it a fencing token.
    ///
    /// # Errors
    ///
    /// [`Backend`](crate::Error::Backend) if there is none to be had.
    async fn fencing_token(&mut self) -> Result<FencingToken>;

    /// Proves that the session is alive: a round trip to the server, as cheap as there is one, that
    /// leaves no trace and takes no snapshot.
    ///
    /// # Errors
    ///
    /// Any: the session counts as lost.
    async fn probe(&mut self) -> Result<()>;

    /// Ends the session, which holds nothing, and gives its connection back for the next one.
    ///
    /// Where that is not possible the connection is closed instead, which is no error.
    async fn recycle(self: Box<Self>);
}

/// Identifies a session: by a number that its server knows it by, on PostgreSQL the process id of
/// its backend, and by the server, so that sessions of two servers are never taken for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId {
    server: u64,
    number: i64,
}

impl SessionId {
    /// The session with this number, on a server that is told from others by `server`: any value
    /// that is the same for all of its sessions and unlikely to be another server's.
    #[must_use]
    pub const fn new(server: u64, number: i64) -> Self {
        Self { server, number }
    }

    /// The number that the server knows the session by.
    #[must_use]
    pub const fn number(self) -> i64 {
        self.number
    }
}

/// Writes the number.
impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}
