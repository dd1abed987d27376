//! What sqlx's errors mean here.

use std::{io, sync::Arc};

use advisory_core::{Error, postgres::DriverError};
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// Why there is no connection.
pub(crate) fn checkout(error: sqlx::Error) -> Error {
    match error {
        sqlx::Error::PoolTimedOut => Error::pool_exhausted(error),
        sqlx::Error::PoolClosed => Error::Closed,
        _ => Error::backend(error),
    }
}

/// Why a statement failed.
pub(crate) fn statement(error: sqlx::Error) -> DriverError {
    match answer(&error) {
        Some(answer) => DriverError::Server {
            code: answer.code().to_owned(),
            detail: answer.detail().map(str::to_owned),
            source: Arc::new(error),
        },
        None => DriverError::Connection(Arc::new(error)),
    }
}

/// Why a connection that was closed earlier runs nothing any more.
pub(crate) fn closed() -> DriverError {
    let not_connected = io::Error::from(io::ErrorKind::NotConnected);
    DriverError::Connection(Arc::new(sqlx::Error::Io(not_connected)))
}

/// Whether the connection can go on after this error.
pub(crate) fn leaves_connection_usable(error: &sqlx::Error) -> bool {
    answer(error)
        .is_some_and(|answer| !matches!(answer.severity(), PgSeverity::Fatal | PgSeverity::Panic))
}

/// The server's answer, if this is one.
fn answer(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}
