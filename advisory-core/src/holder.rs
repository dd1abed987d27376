use std::{fmt, time::SystemTime};

use crate::{LockKey, LockMode, spi::SessionId};

/// A session that holds a lock, as far as the asking one may see.
///
/// PostgreSQL shows the process id to everybody, and the rest only to superusers, members of
/// `pg_read_all_stats` and the role that the holder itself runs as. What is not shown is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The holder's session; on PostgreSQL, the process id of its backend.
    pub session: SessionId,
    /// The key that it holds.
    pub key: LockKey,
    /// The mode it holds the lock in.
    pub mode: LockMode,
    /// The name that its application gave the connection (`application_name`).
    pub application: Option<String>,
    /// What the session is doing: `idle`, `active`, `idle in transaction`, …
    pub state: Option<String>,
    /// Since when it has been in that state. When it took the lock no server records; a session
    /// that took it and then idled was in its state since then.
    pub since: Option<SystemTime>,
    /// The address that the holder's connection comes from.
    pub client: Option<String>,
    /// Whether the session belongs to a manager of this very process. Filled in by the core.
    pub this_process: bool,
}

impl Holder {
    /// A holder of which no more is known.
    #[must_use]
    pub fn new(session: SessionId, key: LockKey, mode: LockMode) -> Self {
        Self {
            session,
            key,
            mode,
            application: None,
            state: None,
            since: None,
            client: None,
            this_process: false,
        }
    }
}

/// `4711 (billing, idle, shared)`: what is known of the holder, and the mode if it is shared. Not
/// the key: whoever reads this has asked for it.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.session)?;
        let shared = (self.mode == LockMode::Shared).then_some("shared");
        let ours = self.this_process.then_some("this process");
        let known = [
            self.application.as_deref(),
            self.state.as_deref(),
            self.client.as_deref(),
            shared,
            ours,
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
