use std::{fmt, future::Future, time::Duration};

use advisory_core::postgres::{Connection, DriverError, Param, Row, Value, in_time};
use async_trait::async_trait;
use futures::FutureExt;
use sqlx::{
    AssertSqlSafe, Decode, Execute, Executor, PgConnection, Postgres, Row as _, TypeInfo, ValueRef,
    error::BoxDynError,
    pool::PoolConnection,
    postgres::{PgRow, PgValueFormat, PgValueRef},
};
use tokio::runtime::{EnterGuard, Handle};

use crate::error;

/// How long a connection may take to go back to its pool. sqlx waits for as long as the network
/// does, and nobody else gets the connection's place meanwhile.
const BACK_WITHIN: Duration = Duration::from_secs(5);

/// A connection checked out of a [`SqlxPool`](crate::SqlxPool).
///
/// Dropping it closes its socket, at once and on any thread. A statement may be under way: the
/// server rolls it back when it next looks at the socket.
pub struct SqlxConnection {
    /// `None` once the connection is closed, or on its way back.
    checkout: Option<Checkout>,
    /// The tokio runtime that the connection was checked out in, if it was one.
    runtime: Option<Handle>,
}

pub(crate) enum Checkout {
    /// The pool's.
    Pooled(PoolConnection<Postgres>),
    /// None of the pool's.
    Beside(PgConnection),
}

impl Checkout {
    fn connection(&mut self) -> &mut PgConnection {
        match self {
            Self::Pooled(connection) => connection,
            Self::Beside(connection) => connection,
        }
    }
}

impl SqlxConnection {
    pub(crate) fn new(checkout: Checkout, runtime: Option<Handle>) -> Self {
        Self {
            checkout: Some(checkout),
            runtime,
        }
    }

    async fn run<'q>(
        &mut self,
        statement: impl Execute<'q, Postgres> + 'q,
    ) -> Result<Vec<Row>, DriverError> {
        let Some(checkout) = &mut self.checkout else {
            return Err(error::closed());
        };
        let rows = checkout.connection().fetch_all(statement).await;
        let rows = rows.and_then(|rows| rows.iter().map(row).collect());
        rows.map_err(|error| {
            // sqlx keeps no mark on a broken connection; this is the only notice there is.
            if !error::leaves_connection_usable(&error) {
                self.close();
            }
            error::statement(error)
        })
    }

    /// Closes the socket and makes room in the pool, where dropping a `PoolConnection` would send
    /// it back to the pool, unfinished statement and all.
    fn close(&mut self) {
        if let Some(checkout) = self.checkout.take() {
            let _context = self.enter_runtime();
            match checkout {
                Checkout::Pooled(pooled) => drop(pooled.detach()),
                Checkout::Beside(beside) => drop(beside),
            }
        }
    }

    /// Sends the connection back to the pool, which tests it first. What is not back in time is
    /// dropped: that closes the socket and makes room.
    fn give_back(&self, mut pooled: PoolConnection<Postgres>) -> impl Future<Output = ()> + use<> {
        let _context = self.enter_runtime();
        // Some four kilobytes, which spawning would move several times.
        let back = Box::pin(pooled.return_to_pool());
        in_time(back, BACK_WITHIN).map(drop)
    }

    /// Makes sure that sqlx can spawn.
    ///
    /// A `PoolConnection` spawns its return when it is dropped, and a replacement if the pool has
    /// `min_connections`, even when it was detached. Built for tokio alone, sqlx panics when that
    /// happens outside of a runtime; its other runtimes can spawn anywhere.
    fn enter_runtime(&self) -> Option<EnterGuard<'_>> {
        match Handle::try_current() {
            Err(error) if error.is_missing_context() => self.runtime.as_ref().map(Handle::enter),
            // Inside a runtime; or at the end of a thread, which cannot enter any.
            _ => None,
        }
    }
}

#[async_trait]
impl Connection for SqlxConnection {
    async fn query(
        &mut self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, DriverError> {
        let query = params
            .iter()
            .fold(sqlx::query(sql), |query, param| match *param {
                Param::Int4(value) => query.bind(value),
                Param::Int8(value) => query.bind(value),
                Param::Int8Array(values) => query.bind(values),
            });
        self.run(query).await
    }

    async fn batch(&mut self, sql: &str) -> Result<Vec<Row>, DriverError> {
        // The text is the core's, with nothing but numbers of its own put in.
        self.run(sqlx::raw_sql(AssertSqlSafe(sql))).await
    }

    fn is_closed(&self) -> bool {
        self.checkout.is_none()
    }

    /// sqlx reads only when it is asked something.
    fn notices_closing(&self) -> bool {
        false
    }

    /// The return takes a round trip of sqlx's own. On tokio a task sees to it, so that the caller
    /// neither waits for it nor can cancel it half-way.
    async fn recycle(mut self) {
        let Some(Checkout::Pooled(pooled)) = self.checkout.take() else {
            return;
        };
        let back = self.give_back(pooled);
        match Handle::try_current().ok().or_else(|| self.runtime.clone()) {
            Some(runtime) => drop(runtime.spawn(back)),
            None => back.await,
        }
    }
}

impl Drop for SqlxConnection {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for SqlxConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlxConnection")
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

fn row(row: &PgRow) -> Result<Row, sqlx::Error> {
    (0..row.len())
        .map(|column| value(row.try_get_raw(column)?).map_err(sqlx::Error::Decode))
        .collect()
}

fn value(raw: PgValueRef<'_>) -> Result<Value, BoxDynError> {
    if raw.is_null() {
        return Ok(Value::Null);
    }
    if raw.format() == PgValueFormat::Text {
        return Ok(Value::Text(raw.as_str()?.to_owned()));
    }
    let type_info = raw.type_info().into_owned();
    Ok(match type_info.name() {
        "BOOL" => Value::Bool(Decode::<Postgres>::decode(raw)?),
        "INT4" => Value::Int4(Decode::<Postgres>::decode(raw)?),
        "INT8" => Value::Int8(Decode::<Postgres>::decode(raw)?),
        "TEXT" => Value::Text(Decode::<Postgres>::decode(raw)?),
        "VOID" => Value::Null,
        other => return Err(format!("no statement should yield the type {other}").into()),
    })
}
