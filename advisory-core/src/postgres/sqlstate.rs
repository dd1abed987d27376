use std::error::Error as StdError;

use super::DriverError;
use crate::Error;

/// A wait outlasted `lock_timeout`.
pub(super) const LOCK_NOT_AVAILABLE: &str = "55P03";
/// This session was chosen to give up.
pub(super) const DEADLOCK_DETECTED: &str = "40P01";
/// The role may not do this.
pub(super) const INSUFFICIENT_PRIVILEGE: &str = "42501";
const OUT_OF_MEMORY: &str = "53200";
const UNKNOWN_PREPARED_STATEMENT: &str = "26000";
const DUPLICATE_PREPARED_STATEMENT: &str = "42P05";
/// A feature that is not supported, an unknown function, table or object. What is sent is known to every
/// PostgreSQL, so these come from what takes itself for one.
const NOT_POSTGRES: [&str; 4] = ["0A000", "42883", "42P01", "42704"];
/// Nothing that this library sends; but PgBouncer has no other code for what it refuses.
const PROTOCOL_VIOLATION: &str = "08P01";

/// What a driver's error means here.
impl From<DriverError> for Error {
    fn from(error: DriverError) -> Self {
        match error {
            DriverError::Connection(source) => Self::Backend(source),
            error if error.names_statement_pooling() => Self::SessionNotPinned,
            DriverError::Server {
                code,
                detail,
                source,
            } => match code.as_str() {
                OUT_OF_MEMORY => Self::LockTableFull { source },
                DEADLOCK_DETECTED => Self::deadlock(detail),
                // The connection's own statements are there on its own session only.
                UNKNOWN_PREPARED_STATEMENT | DUPLICATE_PREPARED_STATEMENT => Self::SessionNotPinned,
                code if NOT_POSTGRES.contains(&code) => Self::unsupported(format!(
                    "it does not know what PostgreSQL knows ({code}: {})",
                    innermost(&*source)
                )),
                _ => Self::Backend(source),
            },
        }
    }
}

impl DriverError {
    /// Whether the session is over: the connection failed, or the server said so.
    pub(super) fn ends_session(&self) -> bool {
        match self {
            Self::Connection(_) => true,
            // Class 08 is about connections; 57P01 to 57P05 are shutdowns and terminations.
            Self::Server { code, .. } => code.starts_with("08") || code.starts_with("57P0"),
        }
    }

    /// The same, after which nothing is known of the session.
    pub(super) fn into_end_of_session(self) -> Self {
        match self {
            Self::Server { source, .. } => Self::Connection(source),
            error @ Self::Connection(_) => error,
        }
    }

    /// The server answered something else than it was asked, so nothing is known of the session.
    pub(super) fn unexpected_answer() -> Self {
        Self::Connection(Error::backend("the server's answer does not fit the question").cause())
    }

    /// Whether a pooler has refused a transaction because of its mode.
    pub(super) fn names_statement_pooling(&self) -> bool {
        match self {
            Self::Server { code, source, .. } if code == PROTOCOL_VIOLATION => {
                chain(&**source).any(|error| error.to_string().contains("statement pooling mode"))
            }
            _ => false,
        }
    }

    pub(super) fn has_code(&self, expected: &str) -> bool {
        matches!(self, Self::Server { code, .. } if code == expected)
    }
}

/// The server's own words: a driver's may only say that there are some.
fn innermost(error: &(dyn StdError + 'static)) -> String {
    chain(error)
        .last()
        .map(ToString::to_string)
        .unwrap_or_default()
}

fn chain<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| (**error).source())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn server(code: &str) -> DriverError {
        DriverError::Server {
            code: code.to_owned(),
            detail: Some("who waits for whom".to_owned()),
            source: Arc::new(std::io::Error::other(code.to_owned())),
        }
    }

    #[test]
    fn the_sqlstate_decides_what_an_error_means() {
        let error = |code| Error::from(server(code));
        assert!(matches!(error("53200"), Error::LockTableFull { .. }));
        assert!(matches!(
            error("40P01"),
            Error::Deadlock {
                detail: Some(_),
                ..
            }
        ));
        assert!(matches!(error("26000"), Error::SessionNotPinned));
        assert!(matches!(error("42501"), Error::Backend(_)));
        for code in NOT_POSTGRES {
            let reason = format!("it does not know what PostgreSQL knows ({code}: {code})");
            match error(code) {
                Error::Unsupported { reason: said } => assert_eq!(said, reason),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn shutdowns_and_broken_connections_end_the_session() {
        for code in ["57P01", "57P02", "57P03", "57P05", "08006"] {
            assert!(server(code).ends_session(), "{code}");
        }
        for code in ["57014", "53200", "40P01", "25P02"] {
            assert!(!server(code).ends_session(), "{code}");
        }
    }
}
