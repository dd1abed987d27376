use std::time::Duration;

use super::{Connection, DriverError, Value, statements};
use crate::{Error, Result, spi::SessionId};

const OLDEST_VERSION: i32 = 140_000;

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
        let rows = connection.query(statements::VERSION, &[]).await?;
        match rows.as_slice() {
            [row] => check_product(row.as_slice())?,
            _ => return Err(DriverError::unexpected_answer().into()),
        }
        let rows = connection.query(statements::FACTS, &[]).await?;
        let facts = match rows.as_slice() {
            [row] => row.as_slice(),
            _ => &[],
        };
        let [
            Value::Int4(version),
            Value::Bool(standby),
            Value::Int8(deadlock_timeout),
            Value::Bool(plpgsql),
            Value::Bool(idle_session_timeout),
            Value::Int8(started),
        ] = *facts
        else {
            return Err(DriverError::unexpected_answer().into());
        };
        if version < OLDEST_VERSION {
            return Err(Error::unsupported(format!(
                "PostgreSQL 14 is the oldest that will do, this is {}",
                version / 10_000
            )));
        }
        if standby {
            return Err(Error::NotPrimary);
        }
        Ok(Self {
            version,
            deadlock_timeout: Duration::from_millis(deadlock_timeout.unsigned_abs()),
            plpgsql,
            idle_session_timeout,
            started: started.unsigned_abs(),
        })
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

    /// Whether there is a `transaction_timeout`, which would end a wait.
    pub(super) fn has_transaction_timeout(&self) -> bool {
        self.version >= 170_000
    }
}

/// Others speak PostgreSQL's protocol; CockroachDB even has the functions, which do nothing there.
fn check_product(row: &[Value]) -> Result<()> {
    match row {
        [Value::Text(version)] if version.starts_with("PostgreSQL ") => Ok(()),
        [Value::Text(version)] => {
            let product = version.split(" (").next().unwrap_or_default();
            Err(Error::unsupported(format!(
                "this is not PostgreSQL but {product}"
            )))
        }
        _ => Err(DriverError::unexpected_answer().into()),
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
        let old = inspect("PostgreSQL 13.9", 130_009, false).unwrap_err();
        assert!(matches!(old, Error::Unsupported { .. }));
        let other = inspect("CockroachDB CCL v23.1.0 (x86_64)", 130_000, false).unwrap_err();
        assert_eq!(
            other.to_string(),
            "the server is not supported: this is not PostgreSQL but CockroachDB CCL v23.1.0",
        );
    }
}
