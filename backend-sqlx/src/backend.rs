use advisory_core::{
    LockBackend, LockSession, Report, Result,
    postgres::{PostgresBackend, PostgresOptions},
};
use async_trait::async_trait;
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::SqlxPool;

/// Locks on PostgreSQL, over sqlx.
///
/// Each top-level lock that is held takes one connection out of the pool, until it is released.
/// Clones share the pool and the lock space.
///
/// # Pools of its own
///
/// What [`connect`](Self::connect) and [`connect_with`](Self::connect_with) open has at most ten
/// connections, opened as they are needed, and a checkout waits at most 30 seconds for one;
/// [`connect_pool`](Self::connect_pool) takes other numbers. The connections are called `advisory`
/// in `pg_stat_activity`, unless the options name them.
///
/// Closing the backend closes the pool, and so does dropping its last clone once no session is
/// left.
///
/// # Examples
///
/// ```no_run
/// use advisory_backend_sqlx::SqlxBackend;
/// use advisory_core::LockManager;
///
/// # async fn example() -> advisory_core::Result<()> {
/// let backend = SqlxBackend::connect("postgres://app@localhost/app").await?;
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
pub struct SqlxBackend {
    inner: PostgresBackend<SqlxPool>,
}

impl SqlxBackend {
    /// Borrows a pool, which its user may go on using and which stays open when the backend is
    /// closed.
    ///
    /// The pool's own limits hold: how many connections there are, and how long a checkout waits
    /// for one before it fails with
    /// [`Error::PoolExhausted`](advisory_core::Error::PoolExhausted). A lock that is held needs a
    /// connection for as long as that takes; leave enough of them for the work under the lock. At
    /// most three quarters of the connections are in use for locks at a time
    /// ([`PostgresOptions::max_sessions`] sets another number); whoever finds those in use first waits
    /// for one of them ([`PostgresOptions::session_within`]).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use advisory_backend_sqlx::SqlxBackend;
    /// use advisory_core::LockManager;
    /// use sqlx::postgres::PgPoolOptions;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = PgPoolOptions::new()
    ///     .max_connections(30)
    ///     .acquire_timeout(Duration::from_secs(5))
    ///     .connect("postgres://app@localhost/app")
    ///     .await?;
    /// let locks = LockManager::new(SqlxBackend::from_pool(pool.clone()));
    ///
    /// locks.close().await?;
    /// assert!(!pool.is_closed());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn from_pool(pool: PgPool) -> Self {
        Self::new(SqlxPool::from_pool(pool))
    }

    /// Opens a pool of the backend's own, from a URL such as
    /// `postgres://user:password@host/database`.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](advisory_core::Error::Backend): the URL is not understood, or the server
    /// cannot be reached. [`Error::PoolExhausted`](advisory_core::Error::PoolExhausted): it does
    /// not answer within the pool's limit.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing open.
    pub async fn connect(url: &str) -> Result<Self> {
        SqlxPool::connect(url).await.map(Self::new)
    }

    /// Opens a pool of the backend's own, with TLS as the options have it. That needs a `tls-…`
    /// feature of sqlx, which this crate leaves to the program.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](advisory_core::Error::Backend): the server cannot be reached.
    /// [`Error::PoolExhausted`](advisory_core::Error::PoolExhausted): it does not answer within the
    /// pool's limit.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing open.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use advisory_backend_sqlx::SqlxBackend;
    /// use sqlx::postgres::{PgConnectOptions, PgSslMode};
    ///
    /// # async fn example() -> advisory_core::Result<()> {
    /// let options = PgConnectOptions::new()
    ///     .host("localhost")
    ///     .username("app")
    ///     .application_name("billing")
    ///     .ssl_mode(PgSslMode::VerifyFull);
    /// let backend = SqlxBackend::connect_with(options).await?;
    /// # drop(backend);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect_with(options: PgConnectOptions) -> Result<Self> {
        Self::connect_pool(options, SqlxPool::default_options()).await
    }

    /// As [`connect_with`](Self::connect_with), with a pool of another size or with other limits.
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
    /// use advisory_backend_sqlx::SqlxBackend;
    /// use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
    ///
    /// # async fn example(options: PgConnectOptions) -> advisory_core::Result<()> {
    /// let pool = PgPoolOptions::new().max_connections(30);
    /// let backend = SqlxBackend::connect_pool(options, pool).await?;
    /// # drop(backend);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect_pool(options: PgConnectOptions, pool: PgPoolOptions) -> Result<Self> {
        SqlxPool::connect_pool(options, pool).await.map(Self::new)
    }

    /// The same pool with other options than the defaults. Clones made earlier keep theirs.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use advisory_backend_sqlx::{PostgresOptions, SqlxBackend};
    ///
    /// # async fn example() -> advisory_core::Result<()> {
    /// let options = PostgresOptions::new().dead_host_within(Duration::from_secs(10));
    /// let backend = SqlxBackend::connect("postgres://app@localhost/app")
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

    fn new(pool: SqlxPool) -> Self {
        let inner = PostgresBackend::new(pool);
        Self { inner }
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl LockBackend for SqlxBackend {
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
