use std::{
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use futures_timer::Delay;

use super::{Connection, DriverError, Pool, Value, driver::answer, pooling, statements};
use crate::{Cause, Error, Pooling, Result, limit::in_time};

/// What a second connection has shown.
pub(super) struct Testimony {
    pub(super) pooling: Pooling,
    /// Whether a lock of one connection is closed to another. Only tried where sessions are kept.
    pub(super) excludes: bool,
    /// Whether a lock ends with its connection. Only tried where locks exclude.
    pub(super) frees: bool,
}

/// What is wrong where locks exclude nobody.
pub(super) const NO_EXCLUSION: &str = "a lock that one connection holds is not closed to another one; \
     they lead to several servers, or to one that is not PostgreSQL";

/// What is wrong where a lock does not end with its connection.
pub(super) const NOT_FREED: &str = "a lock outlives the connection that took it, and whoever gets the server session next owns \
     it, too (a pooler that does not reset a session when its client goes, as PgBouncer without \
     server_reset_query?); set server_reset_query = DISCARD ALL";

/// The same for a transaction.
pub(super) const NOT_FREED_INSIDE: &str = "a lock outlives the connection that took it in a transaction which was not ended, and whoever \
     gets the server session next owns it, too (a pooler that uses it again when its client goes, as \
     pgcat?); pinned mode is safe behind one that closes the session then, as PgBouncer does";

/// How long the server, or a pooler, may take to notice that a connection has been closed.
const FREED_WITHIN: Duration = Duration::from_secs(5);

/// The first pause between two looks whether it has, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(64));

/// The keys of the locks that are left to be freed, outside of a transaction and inside of one. Nobody
/// else can mean them, and they are the same each time: where they stay, they must not fill the
/// server's lock table little by little.
static LEFT: LazyLock<[i64; 2]> = LazyLock::new(|| [(); 2].map(|()| fastrand::i64(0..)));

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
    let mut testimony = Testimony {
        pooling,
        excludes: true,
        frees: true,
    };
    if pooling == Pooling::Session {
        testimony.excludes = excludes(connection, &mut other).await?;
        if testimony.excludes {
            let [key, _] = *LEFT;
            other.batch(&statements::trial_lock(key)).await?;
            drop(other);
            testimony.frees = is_freed(connection, key, limit / 4).await?;
        }
    }
    Ok(testimony)
}

/// Whether a lock ends with its connection in the middle of a transaction; `None` if there is no
/// finding out.
pub(super) async fn frees_inside(pool: &impl Pool, limit: Duration) -> Option<bool> {
    let [_, key] = *LEFT;
    let looked = async {
        let mut connection = pool.connect().await?;
        let mut other = pool.connect().await?;
        let lock = format!("BEGIN;\n{}", statements::trial_lock(key));
        other.batch(&lock).await?;
        drop(other);
        Ok::<_, Error>(is_freed(&mut connection, key, limit / 8).await?)
    };
    in_time(looked, limit / 4).await?.ok()
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

/// Looks until nobody holds that lock any more. It is not tried: a pooler might try it on the very
/// session that holds it, which may enter it again.
async fn is_freed(
    connection: &mut impl Connection,
    key: i64,
    limit: Duration,
) -> Result<bool, DriverError> {
    let (started, limit) = (Instant::now(), limit.min(FREED_WITHIN));
    let (mut pause, longest) = PAUSES;
    while yes(connection, &statements::trial_held(key)).await? {
        if started.elapsed() >= limit {
            return Ok(false);
        }
        Delay::new(pause).await;
        pause = longest.min(pause * 2);
    }
    Ok(true)
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
        super::{
            Row,
            fake::{Fake, PoolOfOne, failure},
        },
        *,
    };

    /// As long as a look may be, before which it has to have seen enough.
    const LIMIT: Duration = Duration::from_secs(30);

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

    fn held(answer: bool) -> Result<Vec<Row>, DriverError> {
        Ok(vec![vec![Value::Bool(answer)]])
    }

    #[test]
    fn it_is_looked_for_until_nobody_holds_it() {
        let fake = answering([("pg_locks", true), ("pg_locks", true), ("pg_locks", false)]);
        assert!(block_on(is_freed(&mut fake.clone(), 7, LIMIT)).unwrap());
        assert!(fake.is_done());
        let fake = answering([("pg_locks", true)]);
        assert!(!block_on(is_freed(&mut fake.clone(), 7, Duration::ZERO)).unwrap());
    }

    /// The look at two that keep their own sessions, up to the lock that one of them leaves.
    fn session_each() -> (Fake, Fake) {
        let by = |pid: i32| Ok(vec![vec![Value::Int4(pid)]]);
        let one = (0..3).fold(Fake::new(), |fake, _| fake.expect("backend_pid", by(71)));
        let other = (0..2).fold(Fake::new().expect("advisory.mark", by(72)), |fake, _| {
            fake.expect("BEGIN", by(72))
                .expect("ROLLBACK", Ok(Vec::new()))
        });
        let left = vec![vec![Value::Text(statements::MARK_VALUE.to_owned())]];
        let one = one
            .expect("pg_try_advisory_lock", held(true))
            .expect("pg_advisory_unlock", held(true));
        let other = other
            .expect("current_setting", Ok(left))
            .expect("pg_try_advisory_lock", held(false))
            .expect("pg_try_advisory_lock", held(true));
        (one, other)
    }

    #[test]
    fn a_lock_that_is_left_must_be_freed() {
        for (limit, looks, frees) in [
            (LIMIT, vec![true, false], true),
            (Duration::ZERO, vec![true], false),
        ] {
            let (one, other) = session_each();
            let look = |fake: Fake, answer| fake.expect("pg_locks", held(answer));
            let one = looks.into_iter().fold(one, look);
            let pool = PoolOfOne(other.clone());
            let heard = block_on(hear(&mut one.clone(), &pool, limit)).unwrap();
            assert!(one.is_done() && other.is_done());
            assert_eq!((heard.excludes, heard.frees), (true, frees));
        }
    }
}
