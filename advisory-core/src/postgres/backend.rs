use std::{
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use async_lock::{Semaphore, SemaphoreGuardArc};
use async_trait::async_trait;
use futures::future::{Either, select};
use futures_timer::Delay;

use super::{Connection, Pool, PostgresOptions, PostgresSession, server::Server};
use crate::{Error, LockBackend, LockSession, Result};

/// A backend on PostgreSQL's advisory locks, for any driver that has a [`Pool`].
///
/// Each session is one connection, taken out of the pool for as long as a lock is held on it.
/// Clones share the pool.
///
/// The first session asks the server what it is. Servers before PostgreSQL 14, and those that only
/// speak its protocol, are refused as [`Error::Unsupported`]; a standby is refused as
/// [`Error::NotPrimary`].
#[derive(Debug)]
pub struct PostgresBackend<P: Pool> {
    shared: Arc<Shared<P>>,
}

#[derive(Debug)]
struct Shared<P> {
    pool: Arc<P>,
    options: PostgresOptions,
    /// As many places as there may be sessions at once.
    places: Option<(usize, Arc<Semaphore>)>,
    /// What the first session found out.
    server: OnceLock<Server>,
    closed: AtomicBool,
}

impl<P: Pool> PostgresBackend<P> {
    /// A backend that takes its connections out of `pool`. Nothing is opened yet.
    #[must_use]
    pub fn new(pool: P) -> Self {
        Self::on(Arc::new(pool), PostgresOptions::new())
    }

    /// The same pool with other options than the defaults. Clones made earlier keep theirs.
    #[must_use]
    pub fn with_options(self, options: PostgresOptions) -> Self {
        Self::on(Arc::clone(&self.shared.pool), options)
    }

    fn on(pool: Arc<P>, options: PostgresOptions) -> Self {
        let sessions = options.sessions(pool.borrowed());
        Self {
            shared: Arc::new(Shared {
                pool,
                options,
                places: sessions.map(|most| (most, Arc::new(Semaphore::new(most)))),
                server: OnceLock::new(),
                closed: AtomicBool::new(false),
            }),
        }
    }
}

impl<P: Pool> Shared<P> {
    /// A place among the sessions that may be in use at once.
    async fn place(&self) -> Result<Option<SemaphoreGuardArc>> {
        let Some((most, places)) = &self.places else {
            return Ok(None);
        };
        if let Some(place) = places.try_acquire_arc() {
            return Ok(Some(place));
        }
        let limit = self.options.session_within;
        match select(pin!(places.acquire_arc()), Delay::new(limit)).await {
            Either::Left((place, _)) => Ok(Some(place)),
            Either::Right(_) => Err(Error::pool_exhausted(format!(
                "all {most} sessions for locks are in use (see PostgresOptions::max_sessions), and \
                 none ended within {limit:?}"
            ))),
        }
    }

    /// What is known of the server; the first to ask finds out.
    async fn server(&self, connection: &mut P::Connection) -> Result<Server> {
        if let Some(server) = self.server.get() {
            return Ok(*server);
        }
        let inspection = pin!(Server::inspect(connection));
        let server = match select(inspection, Delay::new(self.options.session_within)).await {
            Either::Left((server, _)) => server?,
            Either::Right(_) => return Err(Error::unanswered(self.options.session_within)),
        };
        // Two sessions that open at once both ask, and hear the same.
        Ok(*self.server.get_or_init(|| server))
    }
}

impl<P: Pool> Clone for PostgresBackend<P> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

#[async_trait]
impl<P: Pool> LockBackend for PostgresBackend<P> {
    async fn open(&self) -> Result<Box<dyn LockSession>> {
        let shared = &self.shared;
        let place = shared.place().await?;
        // A pool that was handed in stays open, and would go on lending.
        if shared.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        let mut connection = shared.pool.checkout().await?;
        match shared.server(&mut connection).await {
            Ok(server) => {
                let dead_host = shared.options.dead_host;
                let session = PostgresSession::new(connection, server, dead_host, place);
                Ok(Box::new(session))
            }
            Err(error) => {
                if !error.is_unanswered() {
                    connection.recycle().await;
                }
                Err(error)
            }
        }
    }

    async fn close(&self) -> Result<()> {
        if !self.shared.closed.swap(true, Ordering::AcqRel) {
            self.shared.pool.close().await;
        }
        Ok(())
    }
}
