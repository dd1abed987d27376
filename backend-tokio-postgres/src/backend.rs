use advisory_core::{
    LockBackend, LockSession, Report, Result,
    postgres::{PostgresBackend, PostgresOptions},
};
use async_trait::async_trait;
use deadpool_postgres::{Pool, PoolConfig};
use tokio_postgres::Config;

use crate::{TlsConnector, TokioPostgresPool};

/// Locks on PostgreSQL, over tokio-postgres and deadpool-postgres.
///
/// Each top-level lock that is held takes one connection out of the pool, until it is released.
/// Clones share the pool and the lock space.
///
/// # Pools of its own
///
/// What [`connect`](Self::connect) and [`connect_with`](Self::connect_with) open has at most ten
/// connections, opened as they are needed, and a checkout waits at most 30 seconds for one;
/// [`connect_pool`](Self::connect_pool) takes other numbers. The connections are called `advisory`
/// in `pg_stat_activity`, unless the configuration names them.
///
/// Closing the backend closes the pool, and so does dropping its last clone once no session is
/// left.
///
/// # Examples
///
/// ```no_run
/// use advisory_backend_tokio_postgres::TokioPostgresBackend;
/// use advisory_core::LockManager;
///
/// # async fn example() -> advisory_core::Result<()> {
/// let backend = TokioPostgresBackend::connect("postgres://app@localhost/app").await?;
/// let locks = LockManager::new(backend);
///
/// let ran = locks.named("nightly-cleanup").try_with(async || "swept").await?;
/// assert_eq!(ran, Some("swept"));
///
/// locks.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TokioPostgresBackend {
    inner: PostgresBackend<TokioPostgresPool>,
}

impl TokioPostgresBackend {
    /// Borrows a pool, which its user may go on using and which stays open when the backend is
    /// closed.
    ///
    /// The pool's own limits hold: how many connections there are, and how long a checkout waits
    /// for one before it fails with
    /// [`Error::PoolExhausted`](advisory_core::Error::PoolExhausted). deadpool's default is to wait
    /// without limit; [`PoolBuilder::wait_timeout`](deadpool_postgres::PoolBuilder::wait_timeout)
    /// sets one. A lock that is held needs a connection for as long as that takes; leave enough of
    /// them for the work under the lock. At most three quarters of the connections are in use for
    /// locks at a time ([`PostgresOptions::max_sessions`] sets another number); whoever finds those in
    /// use first waits for one of them ([`PostgresOptions::session_within`]).
    ///
    /// Hooks of the pool, or a recycling of its own, must not run `DISCARD ALL` or `DEALLOCATE ALL`:
    /// deadpool's cache of prepared statements is not told, and each connection fails when it is used
    /// for the second time. [`RecyclingMethod::Clean`](deadpool_postgres::RecyclingMethod::Clean) keeps
    /// them, and will do.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use advisory_backend_tokio_postgres::TokioPostgresBackend;
    /// use advisory_core::LockManager;
    /// use deadpool_postgres::{Manager, Pool, Runtime};
    /// use tokio_postgres::NoTls;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let manager = Manager::new("postgres://app@localhost/app".parse()?, NoTls);
    /// let pool = Pool::builder(manager)
    ///     .max_size(30)
    ///     .runtime(Runtime::Tokio1)
    ///     .wait_timeout(Some(Duration::from_secs(5)))
    ///     .build()?;
    /// let locks = LockManager::new(TokioPostgresBackend::from_pool(pool.clone()));
    ///
    /// locks.close().await?;
    /// assert!(!pool.is_closed());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn from_pool(pool: Pool) -> Self {
        Self::new(TokioPostgresPool::from_pool(pool))
    }

    /// Opens a pool of the backend's own, without TLS, from a URL such as
    /// `postgres://user:password@host/database`.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](advisory_core::Error::Backend): the URL is not understood or asks for
    /// TLS, or the server cannot be reached.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing open.
    pub async fn connect(url: &str) -> Result<Self> {
        TokioPostgresPool::connect(url).await.map(Self::new)
    }

    /// Opens a pool of the backend's own, with TLS as the connector and `config` have it.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](advisory_core::Error::Backend): the server cannot be reached.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing open.
    ///
    /// # Examples
    ///
    /// [`NoTls`](tokio_postgres::NoTls) stands for a connector of `postgres-native-tls`,
    /// `postgres-openssl` or `tokio-postgres-rustls`. With one of them ask for
    /// [`SslMode::Require`](tokio_postgres::config::SslMode::Require), or the driver goes on in plain
    /// text if the server has no TLS:
    ///
    /// ```no_run
    /// use advisory_backend_tokio_postgres::TokioPostgresBackend;
    /// use tokio_postgres::{Config, NoTls};
    ///
    /// # async fn example() -> advisory_core::Result<()> {
    /// let mut config = Config::new();
    /// config.host("localhost").user("app").application_name("billing");
    /// let backend = TokioPostgresBackend::connect_with(config, NoTls).await?;
    /// # drop(backend);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect_with(config: Config, tls: impl TlsConnector) -> Result<Self> {
        let pool = TokioPostgresPool::default_config();
        Self::connect_pool(config, tls, pool).await
    }

    /// As [`connect_with`](Self::connect_with), with a pool of another size or with other limits.
    ///
    /// A limit that `pool` leaves out is 30 seconds: nothing waits for ever.
    ///
    /// # Errors
    ///
    /// As [`connect_with`](Self::connect_with).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing open.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use advisory_backend_tokio_postgres::TokioPostgresBackend;
    /// use deadpool_postgres::PoolConfig;
    /// use tokio_postgres::{Config, NoTls};
    ///
    /// # async fn example(config: Config) -> advisory_core::Result<()> {
    /// let backend =
    ///     TokioPostgresBackend::connect_pool(config, NoTls, PoolConfig::new(30)).await?;
    /// # drop(backend);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect_pool(
        config: Config,
        tls: impl TlsConnector,
        pool: PoolConfig,
    ) -> Result<Self> {
        TokioPostgresPool::connect_pool(config, tls, pool)
            .await
            .map(Self::new)
    }

    /// The same pool with other options than the defaults. Clones made earlier keep theirs.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use advisory_backend_tokio_postgres::{PostgresOptions, TokioPostgresBackend};
    ///
    /// # async fn example() -> advisory_core::Result<()> {
    /// let options = PostgresOptions::new().dead_host_within(Duration::from_secs(10));
    /// let backend = TokioPostgresBackend::connect("postgres://app@localhost/app")
    ///     .await?
    ///     .with_options(options);
    /// # drop(backend);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_options(self, options: PostgresOptions) -> Self {
        let inner = self.inner.with_options(options);
        Self { inner }
    }

    fn new(pool: TokioPostgresPool) -> Self {
        let inner = PostgresBackend::new(pool);
        Self { inner }
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl LockBackend for TokioPostgresBackend {
    async fn open(&self) -> Result<Box<dyn LockSession>> {
        self.inner.open().await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }

    async fn check(&self) -> Result<Report> {
        self.inner.check().await
    }
}
