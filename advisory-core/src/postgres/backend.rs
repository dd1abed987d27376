use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;

use super::{Connection, Pool, PostgresSession, server::Server};
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
    pool: P,
    /// What the first session found out.
    server: OnceLock<Server>,
    closed: AtomicBool,
}

impl<P: Pool> PostgresBackend<P> {
    /// A backend that takes its connections out of `pool`. Nothing is opened yet.
    #[must_use]
    pub fn new(pool: P) -> Self {
        Self {
            shared: Arc::new(Shared {
                pool,
                server: OnceLock::new(),
                closed: AtomicBool::new(false),
            }),
        }
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
        // A pool that was handed in stays open, and would go on lending.
        if self.shared.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        let mut connection = self.shared.pool.checkout().await?;
        let server = match self.shared.server.get() {
            Some(server) => *server,
            None => match Server::inspect(&mut connection).await {
                // Two sessions that open at once both ask, and hear the same.
                Ok(server) => *self.shared.server.get_or_init(|| server),
                Err(error) => {
                    // Nothing is wrong with the connection if it is the server that will not do.
                    if matches!(error, Error::NotPrimary | Error::Unsupported { .. }) {
                        connection.recycle().await;
                    }
                    return Err(error);
                }
            },
        };
        Ok(Box::new(PostgresSession::new(connection, server)))
    }

    async fn close(&self) -> Result<()> {
        if !self.shared.closed.swap(true, Ordering::AcqRel) {
            self.shared.pool.close().await;
        }
        Ok(())
    }
}
