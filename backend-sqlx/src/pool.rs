use std::{
    str::FromStr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use advisory_core::{
    Error, Result,
    postgres::{Pool, in_time, polled_inside},
};
use async_trait::async_trait;
use sqlx::{
    ConnectOptions, Connection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::runtime::Handle;

use crate::{SqlxConnection, connection::Checkout, error};

const POOL_SIZE: u32 = 10;
const CHECKOUT_LIMIT: Duration = Duration::from_secs(30);
const APPLICATION_NAME: &str = "advisory";

/// Where the connections of a [`SqlxBackend`](crate::SqlxBackend) come from.
///
/// It is only needed by itself to make a
/// [`PostgresBackend`](advisory_core::postgres::PostgresBackend) by hand.
#[derive(Debug)]
pub struct SqlxPool {
    pool: PgPool,
    /// Whether closing the backend closes the pool.
    owned: bool,
    /// Where connections are opened, if that is tokio.
    runtime: Mutex<Option<Handle>>,
}

impl SqlxPool {
    /// See [`SqlxBackend::from_pool`](crate::SqlxBackend::from_pool).
    #[must_use]
    pub fn from_pool(pool: PgPool) -> Self {
        Self::new(pool, false)
    }

    /// See [`SqlxBackend::connect`](crate::SqlxBackend::connect).
    ///
    /// # Errors
    ///
    /// [`Error::Backend`]: the URL is not understood, or the server cannot be reached.
    pub async fn connect(url: &str) -> Result<Self> {
        let options = PgConnectOptions::from_str(url).map_err(Error::backend)?;
        Self::connect_pool(options, Self::default_options()).await
    }

    /// See [`SqlxBackend::connect_pool`](crate::SqlxBackend::connect_pool).
    ///
    /// # Errors
    ///
    /// [`Error::Backend`]: the server cannot be reached. [`Error::PoolExhausted`]: it does not
    /// answer within the pool's limit.
    pub async fn connect_pool(options: PgConnectOptions, pool: PgPoolOptions) -> Result<Self> {
        let options = match options.get_application_name() {
            Some(_) => options,
            None => options.application_name(APPLICATION_NAME),
        };
        try_out(&options, pool.get_acquire_timeout())
            .await
            .map_err(error::checkout)?;
        let pool = pool.connect_lazy_with(options);
        Ok(Self::new(pool, true))
    }

    fn new(pool: PgPool, owned: bool) -> Self {
        Self {
            pool,
            owned,
            runtime: Mutex::default(),
        }
    }

    /// The runtime that is entered, or else the one that was at the last checkout.
    fn runtime(&self) -> Option<Handle> {
        // Replaced whole.
        let mut last = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(current) = Handle::try_current() {
            *last = Some(current);
        }
        last.clone()
    }

    pub(crate) fn default_options() -> PgPoolOptions {
        PgPoolOptions::new()
            .max_connections(POOL_SIZE)
            .acquire_timeout(CHECKOUT_LIMIT)
    }
}

#[async_trait]
impl Pool for SqlxPool {
    type Connection = SqlxConnection;

    /// Whoever polls this need not be inside tokio, if one checkout before was begun there.
    async fn checkout(&self) -> Result<SqlxConnection> {
        let runtime = self.runtime();
        // Some eight kilobytes, which each future around it would move and allocate anew.
        let pooled = Box::pin(self.pool.acquire());
        let pooled = polled_inside(|| runtime.as_ref().map(Handle::enter), pooled).await;
        let pooled = pooled.map_err(error::checkout)?;
        Ok(SqlxConnection::new(Checkout::Pooled(pooled), runtime))
    }

    async fn connect(&self) -> Result<SqlxConnection> {
        let runtime = self.runtime();
        let options = self.pool.connect_options();
        let beside = polled_inside(|| runtime.as_ref().map(Handle::enter), options.connect()).await;
        let beside = beside.map_err(Error::backend)?;
        Ok(SqlxConnection::new(Checkout::Beside(beside), runtime))
    }

    fn borrowed(&self) -> Option<usize> {
        let size = self.pool.options().get_max_connections();
        (!self.owned).then(|| size.try_into().unwrap_or(usize::MAX))
    }

    async fn close(&self) {
        if self.owned {
            self.pool.close().await;
        }
    }
}

/// Opens and closes a first connection, which shows whether the options are right.
///
/// It is not one of the pool's: that would try a refused one again until its limit ends, and then
/// report nothing but that.
async fn try_out(options: &PgConnectOptions, limit: Duration) -> sqlx::Result<()> {
    let attempt = async { options.connect().await?.close().await };
    in_time(attempt, limit)
        .await
        .unwrap_or(Err(sqlx::Error::PoolTimedOut))
}
