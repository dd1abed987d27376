//! The server's settings that are changed, and how.

use std::time::Duration;

use super::{Connection, DriverError, Value, driver::answer, server::Server, statements};

/// What has to be seen to on a connection before a lock on it is safe.
///
/// - A holder whose host vanishes keeps its locks until the server's TCP stack gives up, by default
///   for two hours. A connection that is used for the first time is told to give up sooner, and
///   stays that way; a mark on it, a setting that PostgreSQL does not know, says that this is done.
/// - Where `idle_session_timeout` is on it would end a session that holds a lock and does nothing
///   else. It is off while the session lasts, and back where it was when the connection goes back.
#[derive(Debug)]
pub(super) struct Upkeep {
    /// The bound that is still to be set, if there is one; cleared by a mark that says so.
    dead_host: Option<DeadHost>,
    idle: Idle,
}

/// What is to be done about `idle_session_timeout`.
#[derive(Debug)]
enum Idle {
    /// It is off anyway.
    Untouched,
    /// It is on, and to be switched off.
    Due,
    /// It was so many milliseconds, and is off.
    Off(i64),
}

/// How long the server may take to notice that a holder's host is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeadHost {
    seconds: i64,
}

impl DeadHost {
    /// In whole seconds, since the server's TCP stack knows no others.
    pub(super) fn within(bound: Duration) -> Self {
        Self {
            seconds: i64::try_from(bound.as_secs())
                .unwrap_or(i64::MAX)
                .clamp(1, 24 * 60 * 60),
        }
    }

    /// A connection that is idle is probed after a third of the bound, up to four times in the
    /// rest of it; data under way may stay unacknowledged for all of it.
    pub(super) fn tcp_settings(&self) -> [(&'static str, i64); 4] {
        let idle = (self.seconds / 3).max(1);
        let interval = ((self.seconds - idle) / 4).max(1);
        let count = ((self.seconds - idle) / interval).clamp(1, 4);
        [
            ("tcp_keepalives_idle", idle),
            ("tcp_keepalives_interval", interval),
            ("tcp_keepalives_count", count),
            ("tcp_user_timeout", self.seconds.saturating_mul(1000)),
        ]
    }

    /// The same, with the mark that says that they are set.
    fn settings(&self) -> Vec<(&'static str, i64)> {
        let mut settings = self.tcp_settings().to_vec();
        settings.push(("advisory.dead_host_within", self.seconds));
        settings
    }
}

impl Upkeep {
    pub(super) fn new(dead_host: Option<DeadHost>, server: &Server) -> Self {
        Self {
            dead_host,
            idle: if server.idle_session_timeout {
                Idle::Due
            } else {
                Idle::Untouched
            },
        }
    }

    /// Takes note of a connection's mark.
    pub(super) fn see_mark(&mut self, mark: &Value) {
        if let (Some(dead_host), Value::Text(mark)) = (self.dead_host, mark)
            && mark.parse() == Ok(dead_host.seconds)
        {
            self.dead_host = None;
        }
    }

    /// Does what is due, in a round trip for each; nearly always that is nothing.
    pub(super) async fn see_to(
        &mut self,
        connection: &mut impl Connection,
    ) -> Result<(), DriverError> {
        if let Some(dead_host) = self.dead_host {
            connection.batch(&set(&dead_host.settings())).await?;
            self.dead_host = None;
        }
        if matches!(self.idle, Idle::Due) {
            let rows = connection.query(statements::IDLE_OFF, &[]).await?;
            self.idle = Idle::Off(answer(&rows, Value::int8)?);
        }
        Ok(())
    }

    /// Puts back what is the caller's.
    pub(super) async fn undo(&self, connection: &mut impl Connection) -> Result<(), DriverError> {
        if let Idle::Off(milliseconds) = self.idle {
            let setting = ("idle_session_timeout", milliseconds);
            connection.batch(&set(&[setting])).await?;
        }
        Ok(())
    }
}

/// The columns of a query that change settings for the rest of the transaction.
pub(super) fn set_local(settings: &[(&str, i64)]) -> String {
    set_config(settings, true)
}

/// A query that changes settings for the rest of the connection.
fn set(settings: &[(&str, i64)]) -> String {
    format!("SELECT {}", set_config(settings, false))
}

fn set_config(settings: &[(&str, i64)], local: bool) -> String {
    let settings: Vec<_> = settings
        .iter()
        .map(|(name, value)| format!("pg_catalog.set_config('{name}', '{value}', {local})"))
        .collect();
    settings.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probes_end_within_the_bound() {
        for seconds in [3, 5, 10, 30, 60, 3600] {
            let bound = DeadHost::within(Duration::from_secs(seconds));
            let [(_, idle), (_, interval), (_, count), (_, user)] = bound.tcp_settings();
            let seconds = i64::try_from(seconds).unwrap();
            assert!(idle >= 1 && interval >= 1 && count >= 1);
            assert!(idle + interval * count <= seconds, "{bound:?}");
            assert_eq!(user, 1000 * seconds);
        }
    }

    #[test]
    fn a_bound_is_at_least_a_second_and_at_most_a_day() {
        for (bound, seconds) in [
            (Duration::ZERO, 1),
            (Duration::from_millis(1900), 1),
            (Duration::MAX, 86_400),
        ] {
            assert_eq!(DeadHost::within(bound), DeadHost { seconds });
        }
    }
}
