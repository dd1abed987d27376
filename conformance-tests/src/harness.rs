use std::fmt;

use advisory_core::{LockBackend, Options};
use async_trait::async_trait;

use crate::Observer;

/// What the suite has to know of the backend under test.
#[async_trait]
pub trait Harness: fmt::Debug + Send + Sync + 'static {
    /// Makes a lock space for one case, which shares no lock with any other: on PostgreSQL a
    /// database of its own.
    async fn space(&self) -> Box<dyn Space>;

    /// Whether a case is about something that is promised otherwise here.
    fn leaves_out(&self, _case: &str) -> bool {
        false
    }
}

/// A lock space, and the backends that give access to it.
#[async_trait]
pub trait Space: fmt::Debug + Send + Sync + 'static {
    /// A backend on this space, as another replica of a service would have it: what it takes, the
    /// space's other backends find taken, but it shares no connection with them.
    ///
    /// `connections` is the most that it has open at a time: whoever asks it for one more waits for
    /// one of them. The cases rely on that. For a backend that knows no such limit the harness has
    /// to set one, by a semaphore around [`open`](LockBackend::open).
    ///
    /// Nobody else uses those connections. Once the backend and its sessions have been dropped they
    /// are closed.
    async fn backend(&self, connections: usize) -> Box<dyn LockBackend>;

    /// How the managers on it are to behave.
    fn options(&self) -> Options {
        Options::new()
    }

    /// Looks at the space without the help of the library.
    fn observer(&self) -> &dyn Observer;

    /// Tells that a case has sessions give back what they do not hold, of which a server may
    /// complain.
    fn expect_vain_unlocks(&self) {}

    /// Removes the space at the end of the case, which may have failed.
    async fn remove(&self);

    /// Looks, after a case that has gone well, at what the space itself has noted down of it, and
    /// fails if that should not have happened: a server's log tells what no observer sees. A space
    /// that keeps no record has nothing to look at.
    fn audit(&self) {}
}
