use std::time::Duration;

use super::{
    Connection, DriverError, Pool, PostgresOptions, Value, driver::answer, options::Keeping,
    product, statements, witness,
};
use crate::{Error, Pooling, Report, Result, Role, Severity, Usage, spi::Turn};

/// Longer than this nobody wants to wait for a deadlock to be found.
const LONG_DEADLOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Looks at the server that a pool's connections lead to, on connections beside it.
pub(super) async fn check(
    pool: &impl Pool,
    options: &PostgresOptions,
    limit: Duration,
) -> Result<Report> {
    let mut connection = pool.connect().await?;
    let version = connection.batch(statements::VERSION).await?;
    let mut report = Report::new(answer(&version, Value::text)?);
    match look(&mut connection, pool, options, limit, &mut report).await {
        // What it is refused for is a finding.
        Err(refused @ Error::Unsupported { .. }) => {
            report.add_finding(Severity::Refusal, refused.to_string());
        }
        looked => looked?,
    }
    Ok(report)
}

async fn look<P: Pool>(
    connection: &mut P::Connection,
    pool: &P,
    options: &PostgresOptions,
    limit: Duration,
    report: &mut Report,
) -> Result<()> {
    // What else could be asked another server may not understand.
    product::check(&report.server)?;
    let facts = connection.batch(statements::CHECKUP).await?;
    let facts = facts.first().and_then(|row| Facts::read(row));
    let facts = facts.ok_or_else(DriverError::unexpected_answer)?;
    let timeouts = connection.batch(statements::TIMEOUTS).await?;
    let timeouts = timeouts.iter().filter_map(|row| timeout(row));
    report.timeouts = timeouts.collect();
    facts.tell(report);
    judge_role(&facts, report);
    judge_limits(&facts, pool, options, report);

    let severity = match options.keeping {
        // So is the first lock.
        Keeping::Checked => Severity::Refusal,
        // They do not look.
        Keeping::Trusted | Keeping::Pinned => Severity::Warning,
    };
    match witness::hear(connection, pool, limit).await {
        Ok(heard) => {
            judge_pooling(heard.pooling, options.keeping, report);
            if !heard.excludes {
                report.add_finding(severity, witness::NO_EXCLUSION);
            }
            if options.keeping != Keeping::Pinned {
                if !heard.frees {
                    report.add_finding(severity, witness::NOT_FREED);
                }
            } else if heard.pooling != Pooling::Statement
                && witness::frees_inside(pool, limit).await == Some(false)
            {
                report.add_finding(severity, witness::NOT_FREED_INSIDE);
            }
            Ok(())
        }
        Err(full @ Error::LockTableFull { .. }) => {
            report.add_finding(Severity::Refusal, full.to_string());
            Ok(())
        }
        Err(error) => match witness::missing(&error) {
            Some(reason) => {
                report.add_finding(severity, reason.to_string());
                Ok(())
            }
            None => Err(error),
        },
    }
}

/// What one row of [`statements::CHECKUP`] tells.
struct Facts {
    version: i32,
    standby: bool,
    plpgsql: bool,
    fsync: bool,
    deadlock_timeout: Duration,
    connections: Usage,
    /// How many of the connections a role like this one may not have.
    reserved: u64,
    locks: Usage,
}

impl Facts {
    fn read(row: &[Value]) -> Option<Self> {
        let [
            version,
            standby,
            plpgsql,
            fsync,
            deadlock_timeout,
            connections,
            max_connections,
            reserved,
            locks,
            max_locks,
        ] = row
        else {
            return None;
        };
        let number = |value: &Value| value.int8()?.try_into().ok();
        Some(Self {
            version: version.int4()?,
            standby: standby.bool()?,
            plpgsql: plpgsql.bool()?,
            fsync: fsync.bool()?,
            deadlock_timeout: Duration::from_millis(number(deadlock_timeout)?),
            connections: Usage::new(number(connections)?, number(max_connections)?),
            reserved: number(reserved)?,
            locks: Usage::new(number(locks)?, number(max_locks)?),
        })
    }

    fn tell(&self, report: &mut Report) {
        report.role = Some(if self.standby {
            Role::Standby
        } else {
            Role::Primary
        });
        report.connections = Some(self.connections);
        report.locks = Some(self.locks);
        report.deadlock_timeout = Some(self.deadlock_timeout);
    }
}

fn judge_role(facts: &Facts, report: &mut Report) {
    if let Err(refused) = product::check_number(facts.version) {
        report.add_finding(Severity::Refusal, refused.to_string());
    }
    if facts.standby {
        report.add_finding(Severity::Refusal, Error::NotPrimary.to_string());
    }
    if !facts.plpgsql {
        report.add_finding(
            Severity::Warning,
            "this role may not use plpgsql; each wait that lasts is an ERROR in the server's log \
             every few hundred milliseconds",
        );
    }
    if !facts.fsync {
        report.add_finding(
            Severity::Warning,
            "fsync is off; after a crash of its host the server may give fencing tokens out again",
        );
    }
    let after = facts.deadlock_timeout;
    if after >= Turn::LONGEST {
        report.add_finding(
            Severity::Warning,
            format!("deadlock_timeout is {after:?}; only timeouts end a deadlock, for no wait is that long"),
        );
    } else if after > LONG_DEADLOCK_TIMEOUT {
        report.add_finding(
            Severity::Warning,
            format!("deadlock_timeout is {after:?}; a deadlock lasts twice as long, at least"),
        );
    }
}

fn judge_limits(facts: &Facts, pool: &impl Pool, options: &PostgresOptions, report: &mut Report) {
    let for_us = facts.connections.most.saturating_sub(facts.reserved);
    let sessions = options.sessions(pool.borrowed());
    let sessions = sessions.and_then(|sessions| u64::try_from(sessions).ok());
    if let Some(sessions) = sessions.filter(|sessions| *sessions > for_us) {
        report.add_finding(
            Severity::Warning,
            format!(
                "there may be {sessions} sessions for locks, and the server lends {for_us} \
                 connections at most"
            ),
        );
    }
    if facts.connections.used * 10 > for_us * 9 {
        report.add_finding(
            Severity::Warning,
            format!(
                "{} of the {for_us} connections that the server lends are in use",
                facts.connections.used
            ),
        );
    }
    if facts.locks.used * 2 > facts.locks.most {
        report.add_finding(
            Severity::Warning,
            "more than half of the server's lock table is taken by advisory locks; when it is full \
             every client's statements fail, not only locks (max_locks_per_transaction)",
        );
    }
    if options.dead_host.is_none() {
        report.add_finding(
            Severity::Warning,
            "a holder whose host vanishes keeps its locks for as long as the server's TCP settings \
             have it: by default two hours",
        );
    }
    if !report.timeouts.is_empty() {
        report.add_finding(
            Severity::Note,
            "the timeouts above end no wait for a lock, and no session while a lock is held on it",
        );
    }
}

fn judge_pooling(pooling: Pooling, keeping: Keeping, report: &mut Report) {
    report.pooling = Some(pooling);
    match (pooling, keeping) {
        (Pooling::Session, Keeping::Checked | Keeping::Trusted) => {}
        (Pooling::Session, Keeping::Pinned) => report.add_finding(
            Severity::Note,
            "pinned mode is not needed here, and costs each section a round trip",
        ),
        // What resets a session does so outside of transactions: inside, the server lets nobody.
        (Pooling::Transaction | Pooling::Reset, Keeping::Pinned) => report.add_finding(
            Severity::Note,
            "pinned mode is on: each session's locks are kept by a transaction",
        ),
        (Pooling::Transaction | Pooling::Reset, Keeping::Checked) => {
            report.add_finding(Severity::Refusal, Error::SessionNotPinned.to_string());
        }
        (Pooling::Transaction | Pooling::Reset, Keeping::Trusted) => report.add_finding(
            Severity::Warning,
            "session pooling is trusted, and it does not look like that; unless a session is kept as \
             soon as it locks, locks exclude nobody",
        ),
        (Pooling::Statement, _) => report.add_finding(
            Severity::Refusal,
            "locks do not outlast a statement here, not in pinned mode either; use session pooling, \
             or a direct connection",
        ),
    }
}

/// From a row of [`statements::TIMEOUTS`].
fn timeout(row: &[Value]) -> Option<(String, Duration)> {
    let [name, milliseconds] = row else {
        return None;
    };
    let limit = Duration::from_millis(milliseconds.int8()?.try_into().ok()?);
    Some((name.text()?.to_owned(), limit))
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

    const LIMIT: Duration = Duration::from_millis(20);
    const FACTS: [&str; 10] = [
        "160005", "f", "t", "t", "1000", "1", "100", "3", "0", "6400",
    ];

    fn row<const N: usize>(row: [&str; N]) -> Result<Vec<Row>, DriverError> {
        let values = row.map(|value| Value::Text(value.to_owned()));
        Ok(vec![values.to_vec()])
    }

    fn postgres() -> Fake {
        Fake::new().expect("version()", row(["PostgreSQL 16.5 on x86_64"]))
    }

    fn report(fake: Fake, options: PostgresOptions) -> Report {
        block_on(check(&PoolOfOne(fake), &options, LIMIT)).unwrap()
    }

    #[test]
    fn what_only_calls_itself_postgres_is_reported_as_refused() {
        let fake = postgres().expect("max_connections", Err(failure("42883")));
        let report = report(fake, PostgresOptions::new());
        assert!(!report.is_fit());
        assert!(report.to_string().contains("42883"), "{report}");
    }

    /// It is refused to whoever wants it looked into, for then it is to the first lock.
    #[test]
    fn a_pooler_that_cannot_be_looked_into_is_refused_unless_it_need_not_be() {
        let options = PostgresOptions::new();
        for (options, is_fit) in [
            (options, false),
            (options.trust_session_pooling(), true),
            (options.pinned(), true),
        ] {
            let never = Fake::new().expect("what nobody asks", row([]));
            let fake = postgres()
                .expect("max_connections", row(FACTS))
                .expect("statement_timeout", Ok(Vec::new()))
                .expect("backend_pid", row(["71"]))
                .expect_after(&never, "advisory.mark", row(["72"]));
            let report = report(fake, options);
            assert_eq!(report.is_fit(), is_fit, "{report}");
            assert_eq!(report.pooling, None);
        }
    }

    /// Behind a pooler that lends a session for a transaction, with these answers to the look for a
    /// lock that was left in one.
    fn pinned_report(held: impl IntoIterator<Item = &'static str>) -> Report {
        let nothing = || Ok(Vec::new());
        let lent = postgres()
            .expect("max_connections", row(FACTS))
            .expect("statement_timeout", nothing())
            .expect("backend_pid", row(["71"]))
            .expect("advisory.mark", row(["72"]))
            .expect("BEGIN", row(["71"]))
            .expect("ROLLBACK", nothing())
            .expect(
                "BEGIN;\nVALUES (pg_catalog.pg_try_advisory_lock",
                row(["t"]),
            );
        let look = |fake: Fake, held| fake.expect("pg_locks", row([held]));
        let fake = held.into_iter().fold(lent, look);
        let options = PostgresOptions::new().pinned();
        let limit = Duration::from_secs(4);
        block_on(check(&PoolOfOne(fake), &options, limit)).unwrap()
    }

    #[test]
    fn a_pooler_that_goes_on_with_an_open_transactions_session_is_warned_of() {
        let is_warned_of = |report: Report| {
            assert!(report.is_fit(), "{report}");
            report.to_string().contains("outlives")
        };
        assert!(!is_warned_of(pinned_report(["f"])));
        assert!(!is_warned_of(pinned_report(["t", "t", "f"])));
        assert!(is_warned_of(pinned_report(["t"; 20])));
    }

    #[test]
    fn a_pooler_is_judged_by_how_sessions_are_kept() {
        let is_fit = |pooling, keeping| {
            let mut report = Report::new("PostgreSQL 16.5");
            judge_pooling(pooling, keeping, &mut report);
            report.is_fit()
        };
        for pooling in [Pooling::Transaction, Pooling::Reset] {
            assert!(!is_fit(pooling, Keeping::Checked));
            assert!(is_fit(pooling, Keeping::Pinned));
        }
        for keeping in [Keeping::Checked, Keeping::Trusted, Keeping::Pinned] {
            assert!(is_fit(Pooling::Session, keeping));
            assert!(!is_fit(Pooling::Statement, keeping));
        }
    }
}
