use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
};

use advisory_core::{
    Result,
    postgres::{Connection, DriverError, Param, Pool, Row, Value},
};
use async_trait::async_trait;

/// What a pool plays: a server or a pooler that is not run here. That is a simulation, on connections
/// to PostgreSQL: it has of the original what is known of it from its documentation, and what matters
/// to locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guise {
    /// It plays nothing.
    #[default]
    None,
    /// A server that answers this when it is asked for its version.
    Product(&'static str),
    /// A pooler that lends a server session for a transaction: whoever comes next gets the one that
    /// has been back for longest, or a new one if all are lent.
    TransactionPooler,
    /// Something that resets the session after each statement outside of a transaction.
    ResettingPooler,
    /// A [transaction pooler](Self::TransactionPooler) that leaves a client its server session for good
    /// once it has changed the session's state: by a setting or a lock.
    PinningProxy,
    /// A balancer over several servers, or a server that takes locks and keeps nobody out: each
    /// connection has its locks to itself, as far as they are exclusive, taken one by one, and of a
    /// `bigint`.
    Islands,
}

impl Guise {
    fn lends(self) -> bool {
        matches!(self, Self::TransactionPooler | Self::PinningProxy)
    }
}

/// A pool in a [`Guise`].
pub struct Disguised<P: Pool> {
    server: Arc<Server<P>>,
}

/// What is behind the guise.
struct Server<P: Pool> {
    pool: P,
    guise: Guise,
    /// The server sessions that are lent, and are not at the moment.
    idle: Mutex<VecDeque<P::Connection>>,
    clients: AtomicI64,
}

impl<P: Pool> Disguised<P> {
    pub(super) fn new(pool: P, guise: Guise) -> Self {
        Self {
            server: Arc::new(Server {
                pool,
                guise,
                idle: Mutex::default(),
                clients: AtomicI64::new(0),
            }),
        }
    }

    fn client(&self, session: Option<P::Connection>) -> DisguisedConnection<P> {
        DisguisedConnection {
            server: Arc::clone(&self.server),
            number: self.server.clients.fetch_add(1, Relaxed),
            keeps: session.is_some(),
            session,
            in_transaction: false,
        }
    }
}

impl<P: Pool> Server<P> {
    /// A session to lend.
    async fn lend(&self) -> Result<P::Connection> {
        let idle = self.idle().pop_front();
        match idle {
            Some(session) => Ok(session),
            None => self.pool.connect().await,
        }
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<P::Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl<P: Pool> Pool for Disguised<P> {
    type Connection = DisguisedConnection<P>;

    async fn checkout(&self) -> Result<Self::Connection> {
        if self.server.guise.lends() {
            return Ok(self.client(None));
        }
        let session = self.server.pool.checkout().await?;
        Ok(self.client(Some(session)))
    }

    async fn connect(&self) -> Result<Self::Connection> {
        if self.server.guise.lends() {
            return Ok(self.client(None));
        }
        let session = self.server.pool.connect().await?;
        Ok(self.client(Some(session)))
    }

    fn borrowed(&self) -> Option<usize> {
        self.server.pool.borrowed()
    }

    async fn close(&self) {
        self.server.pool.close().await;
    }
}

impl<P: Pool> fmt::Debug for Disguised<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disguised")
            .field("guise", &self.server.guise)
            .finish_non_exhaustive()
    }
}

/// A connection out of a [`Disguised`] pool: a client's, which is lent a server session, or has one.
pub struct DisguisedConnection<P: Pool> {
    server: Arc<Server<P>>,
    number: i64,
    session: Option<P::Connection>,
    /// Whether the session is not lent, but this client's.
    keeps: bool,
    in_transaction: bool,
}

impl<P: Pool> DisguisedConnection<P> {
    /// The session for a statement.
    async fn session(&mut self, sql: &str) -> Result<&mut P::Connection, DriverError> {
        if sql.starts_with("BEGIN") {
            self.in_transaction = true;
        } else if sql.starts_with("COMMIT") || sql == "ROLLBACK" {
            self.in_transaction = false;
        }
        if self.server.guise == Guise::PinningProxy && changes_state(sql) {
            self.keeps = true;
        }
        let session = match self.session.take() {
            Some(session) => session,
            None => {
                let lent = self.server.lend().await;
                lent.map_err(|error| DriverError::Connection(Arc::new(error)))?
            }
        };
        Ok(self.session.insert(session))
    }

    /// What the keys of an island are changed by, which are no others'.
    fn island(&self) -> Option<i64> {
        let is_one = self.server.guise == Guise::Islands;
        is_one.then_some(self.number << 32)
    }

    /// After a statement.
    async fn settle(&mut self) -> Result<(), DriverError> {
        if self.in_transaction {
            return Ok(());
        }
        if let (Guise::ResettingPooler, Some(session)) = (self.server.guise, &mut self.session) {
            session.batch("DISCARD ALL").await?;
        }
        if !self.keeps
            && let Some(session) = self.session.take()
        {
            self.server.idle().push_back(session);
        }
        Ok(())
    }
}

#[async_trait]
impl<P: Pool> Connection for DisguisedConnection<P> {
    async fn query(
        &mut self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, DriverError> {
        let island = self.island().unwrap_or_default();
        let params: Vec<_> = params
            .iter()
            .map(|param| match *param {
                Param::Int8(key) => Param::Int8(key ^ island),
                param => param,
            })
            .collect();
        let rows = self.session(sql).await?.query(sql, &params).await;
        self.settle().await?;
        rows
    }

    async fn batch(&mut self, sql: &str) -> Result<Vec<Row>, DriverError> {
        let played = self.island().map(|island| {
            let xor = format!("lock({island} # ");
            sql.replace("lock(", &xor)
        });
        let played = played.as_deref().unwrap_or(sql);
        let rows = self.session(sql).await?.batch(played).await;
        self.settle().await?;
        match self.server.guise {
            Guise::Product(version) if sql.contains("pg_catalog.version()") => {
                Ok(vec![vec![Value::Text(version.to_owned())]])
            }
            _ => rows,
        }
    }

    fn is_closed(&self) -> bool {
        self.session.as_ref().is_some_and(Connection::is_closed)
    }

    fn notices_closing(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(Connection::notices_closing)
    }

    async fn recycle(self) {
        if let Some(session) = self.session
            && !self.server.guise.lends()
        {
            session.recycle().await;
        }
    }
}

impl<P: Pool> fmt::Debug for DisguisedConnection<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DisguisedConnection")
            .field("guise", &self.server.guise)
            .finish_non_exhaustive()
    }
}

/// Whether a statement of the library's leaves something on the session for the next one.
fn changes_state(sql: &str) -> bool {
    sql.contains("advisory_lock") || sql.contains("', false)")
}
