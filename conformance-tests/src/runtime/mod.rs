//! The runtimes that the suite runs on.

#[cfg(feature = "async-std")]
mod async_std;
#[cfg(feature = "smol")]
mod smol;
mod threads;
#[cfg(feature = "tokio")]
mod tokio;

use std::fmt;

use futures::future::{BoxFuture, LocalBoxFuture};

#[cfg(feature = "async-std")]
pub use self::async_std::AsyncStd;
#[cfg(feature = "smol")]
pub use self::smol::Smol;
#[cfg(feature = "tokio")]
pub use self::tokio::Tokio;
pub use threads::Threads;

/// Runs futures: all that a case needs of an async runtime.
///
/// Timers are not among it, because the library under test does not use the runtime's either.
pub trait Runtime: fmt::Debug + Send + Sync + 'static {
    /// Runs a future on the calling thread, inside the runtime if it has an inside, to its end.
    fn block_on(&self, future: LocalBoxFuture<'_, ()>);

    /// Runs a future in the background, at the same time as all others.
    fn spawn(&self, future: BoxFuture<'static, ()>);
}
