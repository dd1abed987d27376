use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use advisory_core::{
    Result,
    postgres::{Connection, DriverError, Param, Pool, Row, Value},
};
use async_trait::async_trait;
use futures::future::BoxFuture;

use super::{Disguised, DisguisedConnection, Guise};

/// Sends statements of a test's own on the connections that the library uses.
///
/// Only a session itself can give up its locks, so there is no other way to play a trick on one;
/// and only the pool's other users can make it busy.
#[derive(Clone, Default)]
pub struct Tap {
    state: Arc<Mutex<State>>,
    guise: Guise,
}

#[derive(Default)]
struct State {
    /// What to send before the library's next statement.
    pending: VecDeque<String>,
    /// The first value of the first row of each, once sent.
    answers: Vec<Value>,
    borrow: Option<Borrow>,
    /// How many connections have been opened beside the pool.
    connects: usize,
}

/// Runs a statement on a connection of the tapped pool.
type Borrow = Arc<dyn Fn(String) -> BoxFuture<'static, Result<Vec<Row>>> + Send + Sync>;

impl Tap {
    /// A tap on what plays a server or a pooler.
    #[must_use]
    pub fn disguised(guise: Guise) -> Self {
        Self {
            guise,
            ..Self::default()
        }
    }

    /// Taps a pool.
    #[must_use]
    pub fn on<P: Pool>(&self, pool: P) -> Tapped<P> {
        let pool = Arc::new(Disguised::new(pool, self.guise));
        let lender = Arc::clone(&pool);
        self.state().borrow = Some(Arc::new(move |sql| {
            let pool = Arc::clone(&lender);
            Box::pin(async move {
                let mut connection = pool.checkout().await?;
                let rows = connection.batch(&sql).await;
                connection.recycle().await;
                Ok(rows.unwrap_or_else(|error| panic!("{sql}: {error:?}")))
            })
        }));
        Tapped {
            pool,
            tap: self.clone(),
        }
    }

    /// Has a statement sent ahead of the library's next one, on the same connection.
    pub fn before_next(&self, sql: impl Into<String>) {
        self.state().pending.push_back(sql.into());
    }

    /// The answers to those that have been sent: the first value of each.
    #[must_use]
    pub fn answers(&self) -> Vec<Value> {
        self.state().answers.clone()
    }

    /// How many connections the library has opened beside the pool.
    #[must_use]
    pub fn connects(&self) -> usize {
        self.state().connects
    }

    /// Runs statements as another user of the same pool.
    ///
    /// # Errors
    ///
    /// Those of the pool's checkout.
    ///
    /// # Panics
    ///
    /// If the tap is on no pool, or the statements fail.
    pub async fn borrow(&self, sql: &str) -> Result<Vec<Row>> {
        let borrow = self.state().borrow.clone().expect("it is on a pool");
        borrow(sql.to_owned()).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tap").finish_non_exhaustive()
    }
}

/// A pool with a [`Tap`] on it.
#[derive(Debug)]
pub struct Tapped<P: Pool> {
    pool: Arc<Disguised<P>>,
    tap: Tap,
}

impl<P: Pool> Tapped<P> {
    fn tapped(
        &self,
        connection: DisguisedConnection<P>,
    ) -> TappedConnection<DisguisedConnection<P>> {
        TappedConnection {
            connection,
            tap: self.tap.clone(),
        }
    }
}

#[async_trait]
impl<P: Pool> Pool for Tapped<P> {
    type Connection = TappedConnection<DisguisedConnection<P>>;

    async fn checkout(&self) -> Result<Self::Connection> {
        Ok(self.tapped(self.pool.checkout().await?))
    }

    async fn connect(&self) -> Result<Self::Connection> {
        self.tap.state().connects += 1;
        Ok(self.tapped(self.pool.connect().await?))
    }

    fn borrowed(&self) -> Option<usize> {
        self.pool.borrowed()
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}

/// A connection out of a [`Tapped`] pool.
#[derive(Debug)]
pub struct TappedConnection<C> {
    connection: C,
    tap: Tap,
}

impl<C: Connection> TappedConnection<C> {
    async fn send_pending(&mut self) -> Result<(), DriverError> {
        loop {
            let Some(sql) = self.tap.state().pending.pop_front() else {
                return Ok(());
            };
            let rows = self.connection.batch(&sql).await?;
            let answer = rows.into_iter().flatten().next().unwrap_or(Value::Null);
            self.tap.state().answers.push(answer);
        }
    }
}

#[async_trait]
impl<C: Connection> Connection for TappedConnection<C> {
    async fn query(
        &mut self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, DriverError> {
        self.send_pending().await?;
        self.connection.query(sql, params).await
    }

    async fn batch(&mut self, sql: &str) -> Result<Vec<Row>, DriverError> {
        self.send_pending().await?;
        self.connection.batch(sql).await
    }

    fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    fn notices_closing(&self) -> bool {
        self.connection.notices_closing()
    }

    async fn recycle(self) {
        self.connection.recycle().await;
    }
}
