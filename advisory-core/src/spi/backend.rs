use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::LockSession;
use crate::{Report, Result};

/// Opens the sessions that locks are held on.
///
/// A [`LockManager`](crate::LockManager) takes one and erases its type. Clones of a backend, if it
/// can be cloned, share one lock space: what one of them locks, the others find locked.
///
/// `Arc<B>` and `Box<B>` of a backend are backends, also for `B = dyn LockBackend`.
///
/// # For implementers
///
/// See the [module documentation](super) for the model. The trait is object-safe by
/// `#[async_trait]`; implement it with the same attribute.
///
/// # Examples
///
/// A backend that counts the sessions another one opens:
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
///
/// use advisory_core::{LockManager, Result, spi::{LockBackend, LockSession}};
/// # use advisory_backend_memory::MemoryBackend;
/// use async_trait::async_trait;
///
/// #[derive(Debug)]
/// struct Counting<B> {
///     inner: B,
///     opened: AtomicUsize,
/// }
///
/// #[async_trait]
/// impl<B: LockBackend> LockBackend for Counting<B> {
///     async fn open(&self) -> Result<Box<dyn LockSession>> {
///         self.opened.fetch_add(1, Relaxed);
///         self.inner.open().await
///     }
///
///     async fn close(&self) -> Result<()> {
///         self.inner.close().await
///     }
/// }
///
/// # futures::executor::block_on(async {
/// let backend = std::sync::Arc::new(Counting {
///     inner: MemoryBackend::new(),
///     opened: AtomicUsize::new(0),
/// });
/// let locks = LockManager::new(backend.clone());
/// locks.named("db:migrate").with(async || { /* … */ }).await?;
/// assert_eq!(backend.opened.load(Relaxed), 1);
/// # Ok::<(), advisory_core::Error>(())
/// # }).unwrap();
/// ```
#[async_trait]
pub trait LockBackend: fmt::Debug + Send + Sync + 'static {
    /// Opens a session that holds nothing.
    ///
    /// May wait for a connection, within a limit of the backend's own.
    ///
    /// # Errors
    ///
    /// - [`PoolExhausted`](crate::Error::PoolExhausted): that limit ended before there was one.
    /// - [`NotPrimary`](crate::Error::NotPrimary), [`Unsupported`](crate::Error::Unsupported): the
    ///   server is reachable, and locks taken on it would not exclude anybody. Such a session is
    ///   never handed out.
    /// - [`Closed`](crate::Error::Closed): after [`close`](Self::close).
    /// - [`Backend`](crate::Error::Backend): everything else.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no connection checked out.
    async fn open(&self) -> Result<Box<dyn LockSession>>;

    /// Closes what the backend owns; what was handed to it by its user stays open.
    ///
    /// The core calls it when no session is left. A second call does nothing and succeeds.
    ///
    /// # Errors
    ///
    /// [`Backend`](crate::Error::Backend) if something could not be closed. The backend counts as
    /// closed all the same.
    async fn close(&self) -> Result<()>;

    /// Finds out what there is to know of the server, and whether its locks can be relied on.
    ///
    /// It takes no session, and no place among those that may be open at once. By default there is
    /// nothing to say.
    ///
    /// # Errors
    ///
    /// [`Backend`](crate::Error::Backend) if the server cannot be asked. That locks would not exclude
    /// anybody is a finding, and no error.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no connection open.
    async fn check(&self) -> Result<Report> {
        Ok(Report::new("of a backend that does not tell"))
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<B: LockBackend + ?Sized> LockBackend for Arc<B> {
    async fn open(&self) -> Result<Box<dyn LockSession>> {
        (**self).open().await
    }

    async fn close(&self) -> Result<()> {
        (**self).close().await
    }

    async fn check(&self) -> Result<Report> {
        (**self).check().await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<B: LockBackend + ?Sized> LockBackend for Box<B> {
    async fn open(&self) -> Result<Box<dyn LockSession>> {
        (**self).open().await
    }

    async fn close(&self) -> Result<()> {
        (**self).close().await
    }

    async fn check(&self) -> Result<Report> {
        (**self).check().await
    }
}
