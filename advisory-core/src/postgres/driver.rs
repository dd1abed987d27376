use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
};

use async_trait::async_trait;

use crate::{Cause, Result};

/// Where a driver's connections come from. With [`Connection`], all that a PostgreSQL driver has
/// to bring to become a backend; see [`PostgresBackend`](super::PostgresBackend).
#[async_trait]
pub trait Pool: fmt::Debug + Send + Sync + 'static {
    /// The driver's connection.
    type Connection: Connection;

    /// Takes a connection out of the pool, within the pool's own limit.
    ///
    /// # Errors
    ///
    /// [`Error::PoolExhausted`](crate::Error::PoolExhausted) when that limit ends,
    /// [`Error::Closed`](crate::Error::Closed) after [`close`](Self::close), and
    /// [`Error::Backend`](crate::Error::Backend) for everything else.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no connection checked out.
    async fn checkout(&self) -> Result<Self::Connection>;

    /// Opens a connection beside the pool: to the same server, as the same user, and not one of the
    /// pool's, so that it is to be had when all of those are in use. It is closed soon after.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](crate::Error::Backend), for whatever keeps the connection from being
    /// opened.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing open.
    async fn connect(&self) -> Result<Self::Connection>;

    /// How many connections the pool has, if it was handed in and others use it as well; `None` for
    /// a pool of the backend's own.
    fn borrowed(&self) -> Option<usize>;

    /// Closes the pool if this backend opened it; a pool that was handed in stays open.
    async fn close(&self);
}

/// One PostgreSQL connection, taken out of a pool.
///
/// Dropping it closes it: the drop needs no runtime, does not block and does not panic. Only
/// [`recycle`](Self::recycle) gives it back to its pool.
///
/// # Cancel safety
///
/// None is asked for. A caller that drops one of these futures drops the connection, too.
#[async_trait]
pub trait Connection: Send + 'static {
    /// Runs one statement, prepared once per connection and cached under its text, and returns
    /// its rows.
    ///
    /// # Errors
    ///
    /// Whatever the driver reports, taken apart as [`DriverError`].
    async fn query(
        &mut self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, DriverError>;

    /// Runs several statements, separated by semicolons, in one message of the simple protocol
    /// (so in one implicit transaction), and returns the rows of all of them, values as
    /// [`Value::Text`].
    ///
    /// # Errors
    ///
    /// As [`query`](Self::query).
    async fn batch(&mut self, sql: &str) -> Result<Vec<Row>, DriverError>;

    /// Whether the driver has noticed that the connection is gone. No I/O.
    fn is_closed(&self) -> bool;

    /// Whether [`is_closed`](Self::is_closed) turns true soon after the connection has closed, while
    /// no statement runs.
    fn notices_closing(&self) -> bool;

    /// Gives the connection back to its pool, in a state fit for the next borrower. One that was
    /// opened beside the pool is closed.
    async fn recycle(self);
}

/// A parameter of a statement. Its type is also what the statement's text casts it to.
#[derive(Clone, Copy, Debug)]
pub enum Param<'a> {
    /// `int4`
    Int4(i32),
    /// `int8`
    Int8(i64),
    /// `int8[]`
    Int8Array(&'a [i64]),
}

/// A row, column by column.
pub type Row = Vec<Value>;

/// A value in a row. The statements of this crate yield no other types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// SQL `NULL`
    Null,
    /// `bool`
    Bool(bool),
    /// `int4`
    Int4(i32),
    /// `int8`
    Int8(i64),
    /// `text`, and every value of [`Connection::batch`]
    Text(String),
}

/// A value that came by the simple protocol is text; these read either form.
impl Value {
    pub(super) fn bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            Self::Text(text) => match text.as_str() {
                "t" => Some(true),
                "f" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn int4(&self) -> Option<i32> {
        match self {
            Self::Int4(value) => Some(*value),
            Self::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    pub(super) fn int8(&self) -> Option<i64> {
        match self {
            Self::Int8(value) => Some(*value),
            Self::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Polls work with something in place that is made for each poll, such as a runtime that is entered.
///
/// For drivers that open connections in a runtime: whoever polls a checkout need not be inside it.
///
/// # Cancel safety
///
/// That of the work.
pub async fn polled_inside<T, G>(
    enter: impl Fn() -> G + Send,
    work: impl Future<Output = T> + Send,
) -> T {
    let mut work = pin!(work);
    poll_fn(|cx| {
        let _entered = enter();
        work.as_mut().poll(cx)
    })
    .await
}

/// The one value that an answer is about: the first in its last row.
pub(super) fn answer<'a, T>(
    rows: &'a [Row],
    read: impl FnOnce(&'a Value) -> Option<T>,
) -> Result<T, DriverError> {
    let value = rows.last().and_then(|row| row.first());
    value
        .and_then(read)
        .ok_or_else(DriverError::unexpected_answer)
}

/// What a driver reports when a statement fails.
#[derive(Debug)]
pub enum DriverError {
    /// The server answered with an error. The connection may go on.
    Server {
        /// The five characters of the SQLSTATE.
        code: String,
        /// The server's detail line, if there is one.
        detail: Option<String>,
        /// The driver's error.
        source: Cause,
    },
    /// The connection is unusable: I/O, protocol, closed. Or it may be, which counts as the same.
    Connection(Cause),
}
