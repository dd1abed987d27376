use std::{fmt, ops::Deref, pin::pin};

use advisory_core::postgres::{Connection, DriverError, Param, Row, Value};
use async_trait::async_trait;
use deadpool_postgres::{ClientWrapper, Object};
use futures::TryStreamExt;
use tokio_postgres::{
    SimpleQueryMessage,
    types::{ToSql, Type},
};

use crate::error;

/// A connection checked out of a [`TokioPostgresPool`](crate::TokioPostgresPool).
///
/// Dropping it closes its socket, on any thread. A statement may be under way: the server rolls it
/// back when it next looks at the socket.
pub struct TokioPostgresConnection {
    /// `None` only while it is taken apart.
    client: Option<Client>,
}

enum Client {
    /// The pool's.
    Pooled(Object),
    /// None of the pool's. Dropping it closes it.
    Beside(ClientWrapper),
}

impl Deref for Client {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        match self {
            Self::Pooled(client) => client,
            Self::Beside(client) => client,
        }
    }
}

impl TokioPostgresConnection {
    pub(crate) fn new(client: Object) -> Self {
        let client = Some(Client::Pooled(client));
        Self { client }
    }

    pub(crate) fn beside(client: ClientWrapper) -> Self {
        let client = Some(Client::Beside(client));
        Self { client }
    }

    fn client(&self) -> Result<&ClientWrapper, DriverError> {
        self.client.as_deref().ok_or_else(error::closed)
    }
}

#[async_trait]
impl Connection for TokioPostgresConnection {
    async fn query(
        &mut self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, DriverError> {
        let client = self.client()?;
        let statement = client.prepare_cached(sql).await;
        let statement = statement.map_err(error::statement)?;
        let answer = client.query_raw(&statement, params.iter().map(to_sql));
        let mut answer = pin!(answer.await.map_err(error::statement)?);
        let mut rows = Vec::with_capacity(1);
        while let Some(next) = answer.try_next().await.map_err(error::statement)? {
            rows.push(row(&next).map_err(error::statement)?);
        }
        Ok(rows)
    }

    async fn batch(&mut self, sql: &str) -> Result<Vec<Row>, DriverError> {
        let messages = self.client()?.simple_query(sql).await;
        let messages = messages.map_err(error::statement)?;
        let rows = messages.iter().filter_map(text_row);
        rows.collect::<Result<_, _>>().map_err(error::statement)
    }

    fn is_closed(&self) -> bool {
        self.client
            .as_deref()
            .is_none_or(|client| client.is_closed())
    }

    /// The driver's task reads all the time.
    fn notices_closing(&self) -> bool {
        true
    }

    async fn recycle(mut self) {
        drop(self.client.take());
    }
}

/// Takes the client out of the pool's hands, which would lend it again.
impl Drop for TokioPostgresConnection {
    fn drop(&mut self) {
        if let Some(Client::Pooled(client)) = self.client.take() {
            drop(Object::take(client));
        }
    }
}

impl fmt::Debug for TokioPostgresConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokioPostgresConnection")
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

fn to_sql<'a>(param: &'a Param<'_>) -> &'a (dyn ToSql + Sync) {
    match param {
        Param::Int4(value) => value,
        Param::Int8(value) => value,
        Param::Int8Array(values) => values,
    }
}

fn row(row: &tokio_postgres::Row) -> Result<Row, tokio_postgres::Error> {
    let columns = row.columns().iter().enumerate();
    let values = columns.map(|(at, column)| {
        let value = match *column.type_() {
            Type::BOOL => row.try_get::<_, Option<_>>(at)?.map(Value::Bool),
            Type::INT4 => row.try_get::<_, Option<_>>(at)?.map(Value::Int4),
            Type::INT8 => row.try_get::<_, Option<_>>(at)?.map(Value::Int8),
            // The driver refuses what is no text.
            _ => row.try_get::<_, Option<_>>(at)?.map(Value::Text),
        };
        Ok(value.unwrap_or(Value::Null))
    });
    values.collect()
}

fn text_row(message: &SimpleQueryMessage) -> Option<Result<Row, tokio_postgres::Error>> {
    let SimpleQueryMessage::Row(row) = message else {
        return None;
    };
    // `get` panics at what is not UTF-8.
    let values = (0..row.len()).map(|column| match row.try_get(column)? {
        Some(text) => Ok(Value::Text(text.to_owned())),
        None => Ok(Value::Null),
    });
    Some(values.collect())
}
