use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_lock::{Semaphore, SemaphoreGuardArc};
use async_trait::async_trait;
use futures::future::BoxFuture;

use super::{
    Connection, Pool, PostgresOptions, PostgresSession, checkup,
    known::Known,
    options::Keeping,
    pinned::{self, Pinned},
    server::Server,
    session::Kept,
    settings::Upkeep,
    token::{self, Tokens},
    witness,
};
use crate::{Error, LockBackend, LockSession, Pooling, Report, Result, limit::in_time};

/// A backend on PostgreSQL's advisory locks, for any driver that has a [`Pool`].
///
/// Each session is one connection, taken out of the pool for as long as a lock is held on it.
/// Clones share the pool.
///
/// The first session asks the server what it is. Servers before PostgreSQL 14, and those that only
/// speak its protocol, are refused as [`Error::Unsupported`]; a standby is refused as
/// [`Error::NotPrimary`]. By means of a second connection it also looks for a pooler that does not keep
/// sessions apart, which is refused as [`Error::SessionNotPinned`], and tries whether a lock on one
/// connection keeps the other out and ends with it, unless the [options](PostgresOptions) have it
/// otherwise.
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
    known: Arc<Known>,
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
                known: Arc::default(),
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
        in_time(places.acquire_arc(), limit)
            .await
            .map(Some)
            .ok_or_else(|| {
                Error::pool_exhausted(format!(
                    "all {most} sessions for locks are in use (see PostgresOptions::max_sessions), \
                     and none ended within {limit:?}"
                ))
            })
    }

    /// A session on a connection that keeps its server session by itself.
    async fn session(
        &self,
        mut connection: P::Connection,
        place: Option<SemaphoreGuardArc>,
    ) -> Result<Box<dyn LockSession>> {
        let server = match self.server(&mut connection).await {
            Ok(server) => server,
            Err(refused) => return Err(turned_away(connection, refused).await),
        };
        let kept = Kept::ByConnection(Upkeep::new(self.options.dead_host, &server));
        let known = Arc::clone(&self.known);
        let session = PostgresSession::new(connection, server, kept, known, place);
        Ok(Box::new(session))
    }

    /// A session on a connection that a transaction keeps.
    async fn pinned(
        &self,
        connection: P::Connection,
        place: Option<SemaphoreGuardArc>,
    ) -> Result<Box<dyn LockSession>> {
        let (connection, server) = match self.known.server() {
            Some(server) => (connection, server),
            None => {
                let dead_host = self.options.dead_host;
                let mut pinned = Pinned::new(connection, pinned::begin(None, dead_host));
                match self.server(&mut pinned).await {
                    // What it begins with depends on the server.
                    Ok(server) => (pinned.end().await?, server),
                    Err(refused) => return Err(turned_away(pinned, refused).await),
                }
            }
        };
        let begin = pinned::begin(Some(&server), self.options.dead_host);
        let pool = Arc::clone(&self.pool);
        let commit = move || -> BoxFuture<'static, Result<i64>> {
            let pool = Arc::clone(&pool);
            Box::pin(async move {
                let mut beside = pool.connect().await?;
                Ok(token::committed(&mut beside).await?)
            })
        };
        let tokens = Tokens::new(server.flushes_messages(), Box::new(commit));
        let connection = Pinned::new(connection, begin);
        let (kept, known) = (Kept::ByTransaction(tokens), Arc::clone(&self.known));
        let session = PostgresSession::new(connection, server, kept, known, place);
        Ok(Box::new(session))
    }

    /// What is known of the server; the first to ask finds out, and the others hear the same.
    async fn server(&self, connection: &mut impl Connection) -> Result<Server> {
        if let Some(server) = self.known.server() {
            return Ok(server);
        }
        let limit = self.options.session_within;
        let found_out = async {
            let _asking = self.known.asking.lock().await;
            if let Some(server) = self.known.server() {
                return Ok(server);
            }
            let server = Server::inspect(connection).await?;
            let mut keeps_sessions = self.known.keeps_sessions();
            if self.options.keeping == Keeping::Checked && !keeps_sessions {
                let heard = witness::hear(connection, &*self.pool, limit).await?;
                if heard.pooling != Pooling::Session {
                    return Err(Error::SessionNotPinned);
                }
                if !heard.excludes {
                    return Err(Error::unsupported(witness::NO_EXCLUSION));
                }
                if !heard.frees {
                    return Err(Error::unsupported(witness::NOT_FREED));
                }
                keeps_sessions = true;
            }
            self.known.learn(server, keeps_sessions);
            Ok(server)
        };
        in_time(found_out, limit)
            .await
            .unwrap_or_else(|| Err(Error::unanswered(limit)))
    }
}

/// Gives back a connection that no session will be on, if it is known to have nothing under way.
async fn turned_away(connection: impl Connection, refused: Error) -> Error {
    let is_idle = matches!(refused, Error::NotPrimary | Error::Unsupported { .. })
        || witness::missing(&refused).is_some();
    if is_idle {
        connection.recycle().await;
    }
    refused
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
        let connection = shared.pool.checkout().await?;
        match shared.options.keeping {
            Keeping::Checked | Keeping::Trusted => shared.session(connection, place).await,
            Keeping::Pinned => shared.pinned(connection, place).await,
        }
    }

    async fn close(&self) -> Result<()> {
        if !self.shared.closed.swap(true, Ordering::AcqRel) {
            self.shared.pool.close().await;
        }
        Ok(())
    }

    async fn check(&self) -> Result<Report> {
        let Shared { pool, options, .. } = &*self.shared;
        let limit = options.session_within;
        in_time(checkup::check(&**pool, options, limit), limit)
            .await
            .unwrap_or_else(|| Err(Error::unanswered(limit)))
    }
}
