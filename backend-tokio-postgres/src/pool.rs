use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use advisory_core::{
    Error, Result,
    postgres::{Pool, polled_inside},
};
use async_trait::async_trait;
use deadpool::managed::Manager as _;
use deadpool_postgres::{
    Manager, ManagerConfig, Pool as Deadpool, PoolConfig, RecyclingMethod, Runtime, Timeouts,
};
use tokio::runtime::Handle;
use tokio_postgres::{Config, NoTls, config::SslMode};

use crate::{TlsConnector, TokioPostgresConnection, error};

const POOL_SIZE: usize = 10;
const CHECKOUT_LIMIT: Duration = Duration::from_secs(30);
const APPLICATION_NAME: &str = "advisory";

/// Where the connections of a [`TokioPostgresBackend`](crate::TokioPostgresBackend) come from.
///
/// It is only needed by itself to make a
/// [`PostgresBackend`](advisory_core::postgres::PostgresBackend) by hand.
pub struct TokioPostgresPool {
    pool: Deadpool,
    /// Whether closing the backend closes the pool.
    owned: bool,
    /// Where connections are opened.
    runtime: Mutex<Option<Handle>>,
}

impl TokioPostgresPool {
    /// See [`TokioPostgresBackend::from_pool`](crate::TokioPostgresBackend::from_pool).
    #[must_use]
    pub fn from_pool(pool: Deadpool) -> Self {
        Self::new(pool, false)
    }

    /// See [`TokioPostgresBackend::connect`](crate::TokioPostgresBackend::connect).
    ///
    /// # Errors
    ///
    /// [`Error::Backend`]: the URL is not understood or asks for TLS, or the server cannot be
    /// reached.
    pub async fn connect(url: &str) -> Result<Self> {
        let config: Config = url.parse().map_err(Error::backend)?;
        if config.get_ssl_mode() == SslMode::Require {
            return Err(Error::backend(
                "the URL asks for TLS (sslmode=require), and connect has none; use connect_with \
                 and a TLS connector",
            ));
        }
        Self::connect_pool(config, NoTls, Self::default_config()).await
    }

    /// See [`TokioPostgresBackend::connect_pool`](crate::TokioPostgresBackend::connect_pool).
    ///
    /// # Errors
    ///
    /// [`Error::Backend`]: the server cannot be reached.
    pub async fn connect_pool(
        mut config: Config,
        tls: impl TlsConnector,
        pool: PoolConfig,
    ) -> Result<Self> {
        if config.get_application_name().is_none() {
            config.application_name(APPLICATION_NAME);
        }
        // Anything slower costs a round trip for each checkout, and there is nothing to clean up.
        let recycling = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let Timeouts {
            wait,
            create,
            recycle,
        } = pool.timeouts;
        let pool = Deadpool::builder(Manager::from_config(config, tls, recycling))
            .config(pool)
            .runtime(Runtime::Tokio1)
            .wait_timeout(wait.or(Some(CHECKOUT_LIMIT)))
            .create_timeout(create.or(Some(CHECKOUT_LIMIT)))
            .recycle_timeout(recycle.or(Some(CHECKOUT_LIMIT)))
            .build()
            .map_err(Error::backend)?;
        // The first connection shows whether the configuration is right.
        drop(pool.get().await.map_err(error::checkout)?);
        Ok(Self::new(pool, true))
    }

    fn new(pool: Deadpool, owned: bool) -> Self {
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

    pub(crate) fn default_config() -> PoolConfig {
        PoolConfig::new(POOL_SIZE)
    }
}

#[async_trait]
impl Pool for TokioPostgresPool {
    type Connection = TokioPostgresConnection;

    /// Whoever polls this need not be inside the runtime, if one checkout before was begun there.
    async fn checkout(&self) -> Result<TokioPostgresConnection> {
        let runtime = self.runtime();
        let client = polled_inside(|| runtime.as_ref().map(Handle::enter), self.pool.get()).await;
        let client = client.map_err(error::checkout)?;
        Ok(TokioPostgresConnection::new(client))
    }

    async fn connect(&self) -> Result<TokioPostgresConnection> {
        let runtime = self.runtime();
        let client = self.pool.manager().create();
        let client = polled_inside(|| runtime.as_ref().map(Handle::enter), client).await;
        let mut client = client.map_err(Error::backend)?;
        // The manager lists each client's statements, and would keep those of one that never goes back.
        self.pool.manager().detach(&mut client);
        Ok(TokioPostgresConnection::beside(client))
    }

    fn borrowed(&self) -> Option<usize> {
        (!self.owned).then(|| self.pool.status().max_size)
    }

    async fn close(&self) {
        if self.owned {
            self.pool.close();
        }
    }
}

/// Not the configuration, which holds a password.
impl fmt::Debug for TokioPostgresPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokioPostgresPool")
            .field("status", &self.pool.status())
            .field("owned", &self.owned)
            .finish_non_exhaustive()
    }
}
