use std::{pin::pin, time::Duration};

use futures::future::{Either, select};
use futures_timer::Delay;

use super::{Connection, DriverError, Row, statements};
use crate::{Error, Pooling, Result};

/// How long an answer may take that another client's transaction might hold up.
const HELD_UP: Duration = Duration::from_secs(2);

/// Whether a connection keeps its server session, found out by means of a second one, `other`.
///
/// A pooler in transaction mode has no reason to move a client as long as nobody else wants the
/// server session. So the other one takes a session for a transaction, twice, and each time the
/// first is asked again which process serves it: a pooler has to give it another one, or to let it
/// wait. `other` also leaves a setting, to be found if nobody resets the session behind its back.
///
/// # Errors
///
/// [`Error::PoolExhausted`] if `other` gets no server session within `limit`: a pooler that has only
/// one. [`Error::Timeout`] if the server does not answer. After that one, and after any verdict but
/// [`Pooling::Session`], `connection` may have a statement under way, and is to be dropped.
pub(super) async fn detect(
    connection: &mut impl Connection,
    other: &mut impl Connection,
    limit: Duration,
) -> Result<Pooling> {
    let first = pid(connection, "").await?;
    let marked = match select(pin!(mark(other)), Delay::new(limit)).await {
        Either::Left((marked, _)) => marked?,
        Either::Right(_) => {
            return Err(Error::pool_exhausted(
                "the pooler in front of the server has no second session to spare, so there is no \
                 finding out whether it keeps sessions apart (see \
                 PostgresOptions::trust_session_pooling)",
            ));
        }
    };
    for _ in 0..2 {
        let theirs = match pid(other, "BEGIN;\n").await {
            Ok(theirs) => theirs,
            // A pooler in statement mode knows no transactions.
            Err(DriverError::Server { .. }) => return Ok(Pooling::Statement),
            Err(error) => return Err(error.into()),
        };
        if theirs == first {
            other.batch("ROLLBACK").await?;
            return Ok(Pooling::Transaction);
        }
        let mut ours = pin!(pid(connection, ""));
        let asked = match select(ours.as_mut(), Delay::new(HELD_UP)).await {
            Either::Left((ours, _)) => Some(ours?),
            Either::Right(_) => None,
        };
        other.batch("ROLLBACK").await?;
        let Some(ours) = asked else {
            // Was it that transaction, or is the server silent?
            return match select(ours, Delay::new(HELD_UP)).await {
                Either::Left(_) => Ok(Pooling::Transaction),
                Either::Right(_) => Err(Error::unanswered(2 * HELD_UP)),
            };
        };
        if ours != first || theirs != marked {
            return Ok(Pooling::Transaction);
        }
    }
    let rows = other.batch(statements::MARKED).await?;
    let marked = rows.first().and_then(|row| row.first()?.text());
    Ok(match marked {
        Some(statements::MARK_VALUE) => Pooling::Session,
        _ => Pooling::Reset,
    })
}

/// The process that serves a connection, after another statement.
async fn pid(connection: &mut impl Connection, before: &str) -> Result<i32, DriverError> {
    let sql = format!("{before}{}", statements::PID);
    number(connection.batch(&sql).await?)
}

/// Leaves a mark on a session, and tells which process has it.
async fn mark(connection: &mut impl Connection) -> Result<i32, DriverError> {
    number(connection.batch(statements::MARK).await?)
}

/// The number in the last row of an answer.
fn number(rows: Vec<Row>) -> Result<i32, DriverError> {
    let number = rows.last().and_then(|row| row.first()?.int4());
    number.ok_or_else(DriverError::unexpected_answer)
}
