use std::{pin::pin, time::Duration};

use futures::future::{Either, select};
use futures_timer::Delay;

use super::{Connection, DriverError, Value, driver::answer, statements};
use crate::{Error, Pooling, Result};

/// How long an answer may take that another client's transaction might hold up.
const HELD_UP: Duration = Duration::from_secs(2);

/// How often that may happen to a connection that then has its own session still. Once, it may have
/// been a server that was slow for a moment.
const MOST_HELD_UP: u32 = 2;

/// Whether a connection keeps its server session, found out by means of a second one, `other`.
///
/// A pooler in transaction mode has no reason to move a client as long as nobody else wants the
/// server session. So the other one takes a session for a transaction, twice, and each time the
/// first is asked again which process serves it: a pooler has to give it another one, or to let it
/// wait, and not only once. `other` also leaves a setting, to be found if nobody resets the session
/// behind its back.
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
    let (mut seen_apart, mut held_up) = (0, 0);
    while seen_apart < 2 {
        let theirs = match pid(other, "BEGIN;\n").await {
            Ok(theirs) => theirs,
            // A pooler in statement mode knows no transactions; but anybody's session may end.
            Err(error) if error.names_statement_pooling() || !error.ends_session() => {
                return Ok(Pooling::Statement);
            }
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
        let answered = asked.is_some();
        let ours = match asked {
            Some(ours) => ours,
            // Was it that transaction, or is the server silent?
            None => match select(ours, Delay::new(HELD_UP)).await {
                Either::Left((ours, _)) => ours?,
                Either::Right(_) => return Err(Error::unanswered(2 * HELD_UP)),
            },
        };
        if answered {
            seen_apart += 1;
        } else {
            held_up += 1;
        }
        if ours != first || theirs != marked || held_up == MOST_HELD_UP {
            return Ok(Pooling::Transaction);
        }
    }
    let rows = other.batch(statements::MARKED).await?;
    Ok(match answer(&rows, Value::text) {
        Ok(statements::MARK_VALUE) => Pooling::Session,
        _ => Pooling::Reset,
    })
}

/// The process that serves a connection, after another statement.
async fn pid(connection: &mut impl Connection, before: &str) -> Result<i32, DriverError> {
    let sql = format!("{before}{}", statements::PID);
    answer(&connection.batch(&sql).await?, Value::int4)
}

/// Leaves a mark on a session, and tells which process has it.
async fn mark(connection: &mut impl Connection) -> Result<i32, DriverError> {
    answer(&connection.batch(statements::MARK).await?, Value::int4)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use futures::executor::block_on;

    use super::{
        super::{
            Row,
            fake::{Fake, failure},
        },
        *,
    };

    const PATIENCE: Duration = Duration::from_secs(10);

    /// The answer of one who was served by this process.
    fn by(pid: i32) -> Result<Vec<Row>, DriverError> {
        text(&pid.to_string())
    }

    fn text(text: &str) -> Result<Vec<Row>, DriverError> {
        Ok(vec![vec![Value::Text(text.to_owned())]])
    }

    fn nothing() -> Result<Vec<Row>, DriverError> {
        Ok(Vec::new())
    }

    /// Asked who serves it, before and each time the other has a session.
    fn asked(pids: impl IntoIterator<Item = i32>) -> Fake {
        let ask = |fake: Fake, pid| fake.expect("backend_pid", by(pid));
        pids.into_iter().fold(Fake::new(), ask)
    }

    /// Leaves its mark on a session, and then has these for a transaction each.
    fn other(marked: i32, pids: impl IntoIterator<Item = i32>) -> Fake {
        let marks = Fake::new().expect("advisory.mark", by(marked));
        pids.into_iter().fold(marks, |fake, pid| {
            fake.expect("BEGIN", by(pid)).expect("ROLLBACK", nothing())
        })
    }

    /// What is found out, by asking everything that was expected and nothing else.
    #[track_caller]
    fn found(connection: &Fake, other: &Fake) -> Pooling {
        let found = block_on(detect(
            &mut connection.clone(),
            &mut other.clone(),
            PATIENCE,
        ));
        assert!(connection.is_done() && other.is_done());
        found.unwrap()
    }

    #[test]
    fn a_session_each_that_keeps_its_mark() {
        let other = other(72, [72, 72]).expect("current_setting", text("left"));
        assert_eq!(found(&asked([71, 71, 71]), &other), Pooling::Session);
    }

    #[test]
    fn a_mark_that_is_gone_was_reset() {
        for lost in [text(""), Ok(vec![vec![Value::Null]])] {
            let other = other(72, [72, 72]).expect("current_setting", lost);
            assert_eq!(found(&asked([71, 71, 71]), &other), Pooling::Reset);
        }
    }

    #[test]
    fn a_session_that_the_other_gets_as_well_is_lent() {
        let (first, second) = (other(71, [71]), other(72, [72, 71]));
        assert_eq!(found(&asked([71]), &first), Pooling::Transaction);
        assert_eq!(found(&asked([71, 71]), &second), Pooling::Transaction);
    }

    #[test]
    fn one_that_is_moved_had_a_session_lent() {
        let (first, second) = (other(72, [72]), other(72, [72, 72]));
        assert_eq!(found(&asked([71, 73]), &first), Pooling::Transaction);
        assert_eq!(found(&asked([71, 71, 73]), &second), Pooling::Transaction);
    }

    #[test]
    fn another_that_is_moved_had_a_session_lent() {
        let (first, second) = (other(72, [73]), other(72, [72, 73]));
        assert_eq!(found(&asked([71, 71]), &first), Pooling::Transaction);
        assert_eq!(found(&asked([71, 71, 71]), &second), Pooling::Transaction);
    }

    /// The pooler has no third session, and lets it wait for the transaction's end.
    #[test]
    fn one_that_waits_for_the_other_had_a_session_lent() {
        let other = other(72, [72]);
        let connection = asked([71]).expect_after(&other, "backend_pid", by(72));
        let started = Instant::now();
        assert_eq!(found(&connection, &other), Pooling::Transaction);
        assert!(started.elapsed() >= HELD_UP);
    }

    /// A connection that has its own session, and gets each of the answers but the first when `other`
    /// has let go of its session once more.
    fn held_up(other: Fake, times: usize) -> (Fake, Fake) {
        (0..times).fold((asked([71]), other), |(connection, other), _| {
            let other = other.expect("BEGIN", by(72)).expect("ROLLBACK", nothing());
            (
                connection.expect_after(&other, "backend_pid", by(71)),
                other,
            )
        })
    }

    /// What a server that is slow for a moment looks like.
    #[test]
    fn one_that_is_late_once_is_asked_again() {
        let (mut connection, mut late) = held_up(other(72, []), 1);
        for _ in 0..2 {
            connection = connection.expect("backend_pid", by(71));
            late = late.expect("BEGIN", by(72)).expect("ROLLBACK", nothing());
        }
        let late = late.expect("current_setting", text("left"));
        assert_eq!(found(&connection, &late), Pooling::Session);
    }

    /// Of the pooler's sessions it got the same one again, by chance.
    #[test]
    fn one_that_waits_each_time_had_a_session_lent() {
        let (connection, other) = held_up(other(72, []), 2);
        assert_eq!(found(&connection, &other), Pooling::Transaction);
    }

    #[test]
    fn a_pooler_without_transactions_lends_for_a_statement() {
        let other = other(71, []).expect("BEGIN", Err(failure("0A000")));
        assert_eq!(found(&asked([71]), &other), Pooling::Statement);
    }

    #[test]
    fn a_session_that_is_ended_meanwhile_says_nothing_of_poolers() {
        for code in ["57P01", "08P01"] {
            let mut other = other(72, []).expect("BEGIN", Err(failure(code)));
            let ended = block_on(detect(&mut asked([71]), &mut other, PATIENCE)).unwrap_err();
            assert!(matches!(ended, Error::Backend(_)), "{ended:?}");
        }
    }

    #[test]
    fn a_pooler_with_one_session_to_lend_cannot_be_looked_into() {
        let never = Fake::new().expect("what nobody asks", nothing());
        let mut other = Fake::new().expect_after(&never, "advisory.mark", by(72));
        let limit = Duration::from_millis(20);
        let unknown = block_on(detect(&mut asked([71]), &mut other, limit)).unwrap_err();
        assert!(
            matches!(unknown, Error::PoolExhausted { .. }),
            "{unknown:?}"
        );
        let advice = std::error::Error::source(&unknown).map(ToString::to_string);
        assert!(advice.is_some_and(|advice| advice.contains("trust_session_pooling")));
    }

    /// Neither that transaction nor anything else lets it answer.
    #[test]
    fn a_silent_server_has_no_verdict() {
        let never = Fake::new().expect("what nobody asks", nothing());
        let mut connection = asked([71]).expect_after(&never, "backend_pid", by(71));
        let silent = block_on(detect(&mut connection, &mut other(72, [72]), PATIENCE));
        assert!(silent.unwrap_err().is_unanswered());
    }
}
