use std::time::Duration;

use super::{Connection, DriverError, Pool, Value, driver::value, pooling, statements};
use crate::{Cause, Error, Pooling, Result};

/// Finds out what one connection of a pool cannot tell alone, by means of a second one: whether they
/// keep their server sessions, and if they do, whether a lock of one is closed to the other.
///
/// # Errors
///
/// As [`pooling::detect`]. [`Error::Unsupported`] if locks exclude nobody; `connection` holds nothing
/// then. [`Error::Backend`] if there is no second connection to be had.
pub(super) async fn find_out(
    connection: &mut impl Connection,
    pool: &impl Pool,
    limit: Duration,
) -> Result<Pooling> {
    let other = pool.connect().await;
    let mut other = other.map_err(|error| Error::backend(NoWitness(error.cause())))?;
    let pooling = pooling::detect(connection, &mut other, limit / 2).await?;
    if pooling == Pooling::Session {
        try_out(connection, &mut other).await?;
    }
    Ok(pooling)
}

/// Takes a lock that nobody else can mean, and has the other one try it.
async fn try_out(connection: &mut impl Connection, other: &mut impl Connection) -> Result<()> {
    let key = fastrand::i64(0..);
    let (lock, unlock) = (statements::trial_lock(key), statements::trial_unlock(key));
    let is_had = yes(connection, &lock).await?;
    let is_had_twice = yes(other, &lock).await?;
    if is_had_twice {
        yes(other, &unlock).await?;
    }
    let is_given_back = yes(connection, &unlock).await?;
    if is_had && !is_had_twice && is_given_back {
        return Ok(());
    }
    Err(Error::unsupported(
        "a lock on one connection is not closed to another one; they lead to several servers, or to \
         one that is not PostgreSQL",
    ))
}

/// Why there is no finding out.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no second connection for finding out whether locks exclude anybody (see \
     PostgresOptions::trust_session_pooling)"
)]
struct NoWitness(#[source] Cause);

async fn yes(connection: &mut impl Connection, sql: &str) -> Result<bool, DriverError> {
    let rows = connection.batch(sql).await?;
    let answer = value(&rows).and_then(Value::bool);
    answer.ok_or_else(DriverError::unexpected_answer)
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::{super::fake::Fake, *};

    fn answering(expected: impl IntoIterator<Item = (&'static str, bool)>) -> Fake {
        let expect =
            |fake: Fake, (part, answer)| fake.expect(part, Ok(vec![vec![Value::Bool(answer)]]));
        expected.into_iter().fold(Fake::new(), expect)
    }

    #[test]
    fn what_one_has_the_other_must_not_get() {
        for (is_had, is_had_twice, is_given_back, will_do) in [
            (true, false, true, true),
            (true, true, true, false),
            (true, false, false, false),
            (false, false, false, false),
        ] {
            let one = answering([
                ("pg_try_advisory_lock", is_had),
                ("pg_advisory_unlock", is_given_back),
            ]);
            let mut theirs = vec![("pg_try_advisory_lock", is_had_twice)];
            theirs.extend(is_had_twice.then_some(("pg_advisory_unlock", true)));
            let other = answering(theirs);
            let tried = block_on(try_out(&mut one.clone(), &mut other.clone()));
            assert!(one.is_done() && other.is_done());
            match tried {
                Ok(()) => assert!(will_do),
                Err(error) => assert!(!will_do && matches!(error, Error::Unsupported { .. })),
            }
        }
    }
}
