use std::fmt;

use crate::{LockMode, spi::SessionId};

/// A session that holds a lock, as far as the asking one may see.
///
/// PostgreSQL shows the process id to everybody, and the rest only to superusers, members of
/// `pg_read_all_stats` and the role that the holder itself runs as. What is not shown is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The holder's session; on PostgreSQL, the process id of its backend.
    pub session: SessionId,
    /// The mode it holds the lock in.
    pub mode: LockMode,
    /// The name that its application gave the connection (`application_name`).
    pub application: Option<String>,
    /// What the session is doing: `idle`, `active`, `idle in transaction`, …
    pub state: Option<String>,
    /// The address that the holder's connection comes from.
    pub client: Option<String>,
}

impl Holder {
    /// A holder of which nothing but the session and the mode is known.
    #[must_use]
    pub fn new(session: SessionId, mode: LockMode) -> Self {
        Self {
            session,
            mode,
            application: None,
            state: None,
            client: None,
        }
    }
}

/// `4711 (billing, idle, shared)`: what is known of the holder, and the mode if it is shared.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.session)?;
        let shared = (self.mode == LockMode::Shared).then_some("shared");
        let known = [
            self.application.as_deref(),
            self.state.as_deref(),
            self.client.as_deref(),
            shared,
        ];
        let known: Vec<_> = known
            .into_iter()
            .flatten()
            .filter(|text| !text.is_empty())
            .collect();
        if !known.is_empty() {
            write!(f, " ({})", known.join(", "))?;
        }
        Ok(())
    }
}
