//! What the errors of tokio-postgres and deadpool-postgres mean here.

use std::{io, sync::Arc};

use advisory_core::{Error, postgres::DriverError};
use deadpool_postgres::PoolError;

/// Why there is no connection.
pub(crate) fn checkout(error: PoolError) -> Error {
    match error {
        PoolError::Timeout(_) => Error::pool_exhausted(error),
        PoolError::Closed => Error::Closed,
        PoolError::Backend(error) => Error::backend(error),
        PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => Error::backend(error),
    }
}

/// Why a statement failed.
pub(crate) fn statement(error: tokio_postgres::Error) -> DriverError {
    match error.as_db_error() {
        Some(answer) => DriverError::Server {
            code: answer.code().code().to_owned(),
            detail: answer.detail().map(str::to_owned),
            source: Arc::new(error),
        },
        None => DriverError::Connection(Arc::new(error)),
    }
}

/// Why a connection that is being given away runs nothing any more.
pub(crate) fn closed() -> DriverError {
    DriverError::Connection(Arc::new(io::Error::from(io::ErrorKind::NotConnected)))
}
