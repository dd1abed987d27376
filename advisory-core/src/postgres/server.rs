use std::time::Duration;

use super::{Connection, DriverError, Value, driver::answer, product, statements};
use crate::{Error, Result, spi::SessionId};

/// What is to be known of a server, and does not change while a backend uses it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Server {
    /// As `server_version_num` has it: 150004 is PostgreSQL 15.4.
    version: i32,
    /// How long a wait lasts before the server looks whether it is part of a deadlock.
    pub(super) deadlock_timeout: Duration,
    /// Whether this role may run a DO block.
    pub(super) plpgsql: bool,
    /// Whether this role's sessions are ended when they idle.
    pub(super) idle_session_timeout: bool,
    /// When it was started, in microseconds: no two servers have that in common.
    started: u64,
}

impl Server {
    /// Asks the server, and refuses one on which locks would not exclude anybody.
    pub(super) async fn inspect(connection: &mut impl Connection) -> Result<Self> {
        // By the simple protocol: behind a pooler a prepared statement may not be found again, and
        // whether there is one is not known yet.
        let rows = connection.batch(statements::VERSION).await?;
        product::check(answer(&rows, Value::text)?)?;
        let rows = connection.batch(statements::FACTS).await?;
        let facts = rows.first().and_then(|row| Self::read(row));
        let (server, standby) = facts.ok_or_else(DriverError::unexpected_answer)?;
        product::check_number(server.version)?;
        if standby {
            return Err(Error::NotPrimary);
        }
        Ok(server)
    }

    /// From a row of [`statements::FACTS`]; also whether it is a standby.
    fn read(row: &[Value]) -> Option<(Self, bool)> {
        let [version, standby, deadlock_timeout, plpgsql, idle, started] = row else {
            return None;
        };
        let server = Self {
            version: version.int4()?,
            deadlock_timeout: Duration::from_millis(deadlock_timeout.int8()?.unsigned_abs()),
            plpgsql: plpgsql.bool()?,
            idle_session_timeout: idle.bool()?,
            started: started.int8()?.unsigned_abs(),
        };
        Some((server, standby.bool()?))
    }

    #[cfg(test)]
    pub(super) fn for_tests() -> Self {
        Self {
            version: 150_004,
            deadlock_timeout: Duration::from_secs(1),
            plpgsql: true,
            idle_session_timeout: false,
            started: 1,
        }
    }

    /// The session that this process of the server serves.
    pub(super) fn session(&self, pid: i32) -> SessionId {
        SessionId::new(self.started, pid.into())
    }

    /// Whether a message can be written to its log and waited for inside a transaction.
    pub(super) fn flushes_messages(&self) -> bool {
        self.version >= 170_000
    }

    /// Whether there is a `transaction_timeout`, which would end a wait.
    pub(super) fn has_transaction_timeout(&self) -> bool {
        self.version >= 170_000
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::{super::fake::Fake, *};

    fn inspect(version: &str, number: i32, standby: bool) -> Result<Server> {
        let facts = vec![
            Value::Int4(number),
            Value::Bool(standby),
            Value::Int8(1000),
            Value::Bool(true),
            Value::Bool(false),
            Value::Int8(1_700_000_000_000_000),
        ];
        let fake = Fake::new()
            .expect("version()", Ok(vec![vec![Value::Text(version.to_owned())]]))
            .expect("server_version_num", Ok(vec![facts]));
        block_on(Server::inspect(&mut fake.clone()))
    }

    #[test]
    fn a_primary_will_do() {
        let server = inspect("PostgreSQL 15.4 on x86_64", 150_004, false).unwrap();
        assert_eq!(server.deadlock_timeout, Duration::from_secs(1));
        assert!(server.plpgsql && !server.has_transaction_timeout());
        let newer = inspect("PostgreSQL 17.0 on x86_64", 170_000, false).unwrap();
        assert!(newer.has_transaction_timeout());
    }

    #[test]
    fn others_are_refused() {
        let standby = inspect("PostgreSQL 15.4", 150_004, true).unwrap_err();
        assert!(matches!(standby, Error::NotPrimary));
        for (version, number) in [
            ("CockroachDB CCL v23.1.0 (x86_64)", 130_000),
            ("PostgreSQL 13.9", 130_009),
            ("PostgreSQL 14.1", 130_009),
        ] {
            let refused = inspect(version, number, false).unwrap_err();
            assert!(matches!(refused, Error::Unsupported { .. }), "{version}");
        }
    }
}
