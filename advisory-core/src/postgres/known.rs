use std::sync::{Mutex, MutexGuard, PoisonError};

use super::server::Server;

/// What a backend has found out about its server, and shares with its sessions, which find out
/// that it no longer holds.
#[derive(Debug, Default)]
pub(super) struct Known {
    state: Mutex<State>,
    /// Held by the one that asks, so that the others can hear the same.
    pub(super) asking: async_lock::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    server: Option<Server>,
    keeps_sessions: bool,
}

impl Known {
    /// The server, if nothing has to be asked before it is used.
    pub(super) fn server(&self) -> Option<Server> {
        self.state().server
    }

    /// What was found out, by one who has seen that sessions are kept, or need not know.
    pub(super) fn learn(&self, server: Server, keeps_sessions: bool) {
        let server = Some(server);
        *self.state() = State {
            server,
            keeps_sessions,
        };
    }

    /// Whether its connections have been found to keep their server sessions.
    pub(super) fn keeps_sessions(&self) -> bool {
        self.state().keeps_sessions
    }

    /// A session has ended: the next one may meet a server that was started anew, or another one.
    pub(super) fn doubt_server(&self) {
        self.state().server = None;
    }

    /// A session did not hold what it was granted, or was answered by another: there may be a
    /// pooler in between.
    pub(super) fn doubt_sessions(&self) {
        *self.state() = State::default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Both fields are valid at any time.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
