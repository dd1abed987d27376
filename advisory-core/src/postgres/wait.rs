use std::time::Duration;

use super::{
    Connection, DriverError, Row, Value,
    driver::answer,
    holders,
    server::Server,
    settings::set_local,
    sqlstate::{DEADLOCK_DETECTED, LOCK_NOT_AVAILABLE},
    statements::{self, Statements},
    tag::LockTag,
};
use crate::{
    LockKey, LockMode,
    spi::{Claim, Waited},
};

/// How a slice ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Slice {
    Over(Waited),
    /// With the server's account of it.
    Deadlock(Option<String>),
}

impl Slice {
    const GRANTED: Self = Self::Over(Waited::Granted);

    fn timed_out(behind_readers: bool) -> Self {
        Self::Over(Waited::TurnOver { behind_readers })
    }

    /// A cycle through an index build is none of ours: this session is out of its way now, and
    /// may queue up again.
    fn deadlock(detail: Option<String>) -> Self {
        match detail {
            Some(detail) if names_virtual_transaction(&detail) => Self::timed_out(false),
            detail => Self::Deadlock(detail),
        }
    }
}

/// Waits for a claim on the server, for at most one slice; also tells which process answered.
///
/// A waiting `pg_advisory_lock` can end in an error and hold the lock all the same, so its end is
/// looked into on the server; see [`Statements::wait`].
pub(super) async fn wait(
    connection: &mut impl Connection,
    server: &Server,
    claim: Claim,
    slice: Duration,
) -> Result<(Slice, Option<i32>), DriverError> {
    if server.plpgsql {
        wait_in_block(connection, server, claim, slice).await
    } else {
        wait_in_plain(connection, server, claim, slice).await
    }
}

async fn wait_in_block(
    connection: &mut impl Connection,
    server: &Server,
    claim: Claim,
    slice: Duration,
) -> Result<(Slice, Option<i32>), DriverError> {
    let LockTag { class, object, .. } = claim.key.into();
    let mut settings = timeouts_off(server);
    settings.extend([
        ("advisory.class", class.into()),
        ("advisory.object", object.into()),
        ("advisory.slice", milliseconds(slice)),
    ]);
    if let LockKey::BigInt(key) = claim.key {
        settings.push(("advisory.key", key));
    }
    let sql = format!(
        "{}, {};\n{};\n{}",
        statements::PRESUMED,
        set_local(&settings),
        Statements::of(claim).wait,
        statements::OUTCOME,
    );
    let rows = connection.batch(&sql).await?;
    let pid = rows.first().and_then(|row| row.first()?.int4());
    let pid = pid.ok_or_else(DriverError::unexpected_answer)?;
    let slice = match answer(&rows, Value::text)? {
        "granted" => Slice::GRANTED,
        "timeout" => Slice::timed_out(false),
        "readers" => Slice::timed_out(true),
        other => {
            let detail = other.strip_prefix("deadlock:");
            let detail = detail.ok_or_else(DriverError::unexpected_answer)?;
            Slice::deadlock((!detail.is_empty()).then(|| detail.to_owned()))
        }
    };
    Ok((slice, Some(pid)))
}

/// Without `plpgsql` nothing on the server can catch the timeout: it is an error here, a line in
/// the server's log, and what came of it is asked for in statements of their own.
async fn wait_in_plain(
    connection: &mut impl Connection,
    server: &Server,
    claim: Claim,
    slice: Duration,
) -> Result<(Slice, Option<i32>), DriverError> {
    let mut settings = timeouts_off(server);
    settings.push(("lock_timeout", milliseconds(slice)));
    let sql = format!(
        "SELECT {};\nSELECT {}({});\n{}",
        set_local(&settings),
        Statements::of(claim).lock_function,
        arguments(claim.key),
        statements::PID,
    );
    match connection.batch(&sql).await {
        Ok(rows) => match rows.last().map(Row::as_slice) {
            Some([Value::Text(pid)]) => Ok((Slice::GRANTED, pid.parse().ok())),
            _ => Err(DriverError::unexpected_answer()),
        },
        Err(error) if error.has_code(LOCK_NOT_AVAILABLE) => {
            Ok((after_timeout(connection, server, claim).await?, None))
        }
        Err(DriverError::Server { code, detail, .. }) if code == DEADLOCK_DETECTED => {
            Ok((Slice::deadlock(detail), None))
        }
        Err(error) => Err(error),
    }
}

/// What the block's handler finds out, asked from here.
async fn after_timeout(
    connection: &mut impl Connection,
    server: &Server,
    claim: Claim,
) -> Result<Slice, DriverError> {
    if holders::held(connection).await?.contains(&claim.into()) {
        return Ok(Slice::GRANTED);
    }
    let behind_readers = claim.mode == LockMode::Exclusive
        && holders::holders(connection, server, claim.key)
            .await?
            .iter()
            .all(|holder| holder.mode == LockMode::Shared);
    Ok(Slice::timed_out(behind_readers))
}

/// What would end a wait early. A role or a database may have set it.
fn timeouts_off(server: &Server) -> Vec<(&'static str, i64)> {
    let mut settings = vec![("statement_timeout", 0)];
    if server.has_transaction_timeout() {
        settings.push(("transaction_timeout", 0));
    }
    settings
}

fn arguments(key: LockKey) -> String {
    match key {
        LockKey::BigInt(key) => key.to_string(),
        LockKey::Pair(class, object) => format!("{class}, {object}"),
    }
}

/// At least one, because zero would be no limit.
fn milliseconds(slice: Duration) -> i64 {
    i64::try_from(slice.as_millis()).unwrap_or(i64::MAX).max(1)
}

/// Whether a deadlock's detail names a virtual transaction, `3/1415`. The words around it are in
/// the server's language, and nothing else in such a text has that form.
fn names_virtual_transaction(detail: &str) -> bool {
    detail.as_bytes().windows(3).any(|window| {
        let [before, middle, after] = window else {
            return false;
        };
        before.is_ascii_digit() && *middle == b'/' && after.is_ascii_digit()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_build_is_told_from_a_cycle_of_locks() {
        let build = "Process 71 waits for ShareLock on virtual transaction 4/37; blocked by \
                     process 72.\nProcess 72 waits for ExclusiveLock on advisory lock \
                     [5,0,1,1]; blocked by process 71.";
        let cycle = "Process 71 waits for ExclusiveLock on advisory lock [5,0,2,1]; blocked by \
                     process 72.\nProcess 72 waits for ExclusiveLock on advisory lock \
                     [5,0,1,1]; blocked by process 71.";
        let deadlock = |detail: &str| Slice::deadlock(Some(detail.to_owned()));
        assert_eq!(deadlock(build), Slice::timed_out(false));
        assert_eq!(deadlock(cycle), Slice::Deadlock(Some(cycle.to_owned())));
        assert_eq!(Slice::deadlock(None), Slice::Deadlock(None));
    }

    #[test]
    fn a_slice_is_never_without_limit() {
        assert_eq!(milliseconds(Duration::ZERO), 1);
        assert_eq!(milliseconds(Duration::from_micros(2999)), 2);
    }
}
