use std::{sync::Arc, time::Duration};

use super::{Connection, DriverError, Pool, Value, driver::answer, pooling, statements};
use crate::{Cause, Error, Pooling, Result};

/// What a second connection has shown.
pub(super) struct Testimony {
    pub(super) pooling: Pooling,
    /// Whether a lock of one connection is closed to another. Only tried where sessions are kept.
    pub(super) excludes: bool,
}

/// What is wrong where locks exclude nobody.
pub(super) const NO_EXCLUSION: &str = "a lock that one connection holds is not closed to another one; \
     they lead to several servers, or to one that is not PostgreSQL";

/// Finds out what one connection of a pool cannot tell alone, by means of a second one.
///
/// # Errors
///
/// As [`pooling::detect`]. [`Error::Backend`] if there is no second connection to be had.
pub(super) async fn hear(
    connection: &mut impl Connection,
    pool: &impl Pool,
    limit: Duration,
) -> Result<Testimony> {
    let other = pool.connect().await;
    let mut other = other.map_err(|error| Error::backend(NoWitness(error.cause())))?;
    let pooling = pooling::detect(connection, &mut other, limit / 2).await?;
    let excludes = pooling != Pooling::Session || excludes(connection, &mut other).await?;
    Ok(Testimony { pooling, excludes })
}

/// The reason, if this is the error of a second connection that was not to be had.
pub(super) fn missing(error: &Error) -> Option<Cause> {
    match error {
        Error::PoolExhausted { source } => Some(Arc::clone(source)),
        Error::Backend(cause) if cause.is::<NoWitness>() => Some(Arc::clone(cause)),
        _ => None,
    }
}

/// Takes a lock that nobody else can mean, and has the other one try it. `connection` does not keep it.
async fn excludes(
    connection: &mut impl Connection,
    other: &mut impl Connection,
) -> Result<bool, DriverError> {
    let key = fastrand::i64(0..);
    let (lock, unlock) = (statements::trial_lock(key), statements::trial_unlock(key));
    let is_had = yes(connection, &lock).await?;
    let is_had_twice = yes(other, &lock).await;
    // Whoever cannot give it back must not go back to a pool with it.
    let is_given_back = yes(connection, &unlock).await;
    let is_given_back = is_given_back.map_err(DriverError::into_end_of_session)?;
    if is_had_twice? {
        yes(other, &unlock).await?;
        return Ok(false);
    }
    Ok(is_had && is_given_back)
}

/// Why there is no finding out.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no second connection, by which to find out whether locks exclude anybody \
     (PostgresOptions::trust_session_pooling does without)"
)]
struct NoWitness(#[source] Cause);

async fn yes(connection: &mut impl Connection, sql: &str) -> Result<bool, DriverError> {
    let rows = connection.batch(sql).await?;
    answer(&rows, Value::bool)
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::{
        super::fake::{Fake, failure},
        *,
    };

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
            let tried = block_on(excludes(&mut one.clone(), &mut other.clone()));
            assert!(one.is_done() && other.is_done());
            assert_eq!(tried.unwrap(), will_do);
        }
    }

    #[test]
    fn what_was_had_is_given_back_if_the_other_fails() {
        let one = answering([("pg_try_advisory_lock", true), ("pg_advisory_unlock", true)]);
        let other = Fake::new().expect("pg_try_advisory_lock", Err(failure("42883")));
        let tried = block_on(excludes(&mut one.clone(), &mut other.clone()));
        assert!(tried.unwrap_err().has_code("42883"));
        assert!(one.is_done());
    }
}
