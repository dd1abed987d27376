//! What an owner had better not do, so that what comes of a program can be foretold.

use advisory::LockMode;

use super::Player;
use crate::{
    program::{Kind, Name, Patience, Turns},
    server::Seen,
};

impl Player<'_> {
    /// How patient the owner may be, so that what comes of it can be foretold; `None` if it had
    /// better not ask.
    pub(super) fn permitted(
        &self,
        owner: usize,
        name: Name,
        patience: Patience,
    ) -> Option<Patience> {
        let of_key = |seen: &&Seen| seen.claim.key == self.keys[name.key];
        let queued = self.look.iter().filter(of_key).any(|seen| !seen.granted);
        let mut held = self
            .look
            .iter()
            .filter(|seen| seen.granted && self.owner_of(seen) == Some(owner));
        if queued && name.mode == LockMode::Shared && self.server.tries_jump_queues() {
            let writes = |seen: &Seen| seen.claim.mode == LockMode::Exclusive;
            if held.clone().filter(of_key).any(writes) {
                return None;
            }
        }
        let role = &self.roles[owner];
        // A task's guard outside of sections gets a session that holds nothing else.
        let holding = held.next().is_some() && (role.kind == Kind::Session || role.depth > 0);
        match (self.turns, patience) {
            (Turns::Natural, _) if queued => None,
            (Turns::Natural, Patience::Limit(_) | Patience::Unlimited) if holding => {
                Some(Patience::None)
            }
            // Whether a deadlock or the timeout comes first is a matter of luck.
            (Turns::Endless, Patience::Limit(_)) if holding => Some(Patience::ZERO),
            (_, patience) => Some(patience),
        }
    }

    /// Whether the owner may drop its wait. An endless turn goes on without it, on a session that
    /// lives on; without one the double ends it at once, and the server does not.
    pub(super) fn may_cancel(&self, owner: usize) -> bool {
        let role = &self.roles[owner];
        let session_lives_on = role.kind == Kind::Session || role.depth > 0;
        self.turns == Turns::Natural || session_lives_on || self.waiting_inside.contains(&owner)
    }

    /// Whether an endless wait goes on that the owner has dropped. It uses the session until it is
    /// granted, so the owner had better not.
    pub(super) fn lingers(&self, owner: usize) -> bool {
        let mut lingering = self.lingering.iter();
        lingering.any(|(session, _)| session.owner == owner)
    }
}
