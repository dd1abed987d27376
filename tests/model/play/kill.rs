//! Ends sessions by force.

use std::collections::BTreeMap;

use super::Player;
use crate::{journal::Tag, outcome::Outcome, program::Turns, task::Command};

impl Player<'_> {
    /// Ends a session of the owner, and waits until the owner can know; whether there is one. How
    /// soon a driver notices is a matter of luck.
    pub(super) async fn kill(&mut self, owner: usize, nth: usize) -> bool {
        let sessions: BTreeMap<_, _> = self
            .look
            .iter()
            .filter_map(|seen| Some((self.journal.tag(seen.session)?, seen.session)))
            .filter(|(tag, _)| tag.owner == owner)
            .collect();
        let Some(nth) = nth.checked_rem(sessions.len()) else {
            return false;
        };
        let session = sessions.values().nth(nth);
        let session = *session.expect("there are more than that");
        if self.roles[owner].at.is_some() {
            self.end(session).await;
            return true;
        }
        let before = self.count_lost(owner).await;
        self.end(session).await;
        if self.is_to_be_stopped(owner) {
            self.until(async |player| {
                player.hear();
                !player.is_to_be_stopped(owner)
            })
            .await;
        } else {
            self.until(async |player| player.count_lost(owner).await > before)
                .await;
        }
        // Only the first that knew may have been counted.
        let after = Outcome::Lost(self.count_lost(owner).await);
        self.heard.entry(owner).or_default().push(after);
        true
    }

    /// Ends the wait of an owner that does not end by itself.
    pub(super) async fn unstick(&mut self, owner: usize) {
        match self.wait_of(owner).map(|wait| wait.session) {
            Some(session) if self.turns == Turns::Endless => self.end(session).await,
            _ => self.roles[owner].stop.request(),
        }
    }

    /// Whether the owner is in sections whose session was killed. They will be stopped.
    pub(super) fn is_to_be_stopped(&self, owner: usize) -> bool {
        let section = self.section_of(owner);
        section.is_some_and(|section| self.killed.contains(&section))
    }

    /// The session of the sections that the owner is in: it opens none inside of them.
    fn section_of(&self, owner: usize) -> Option<Tag> {
        let section = self.journal.last(owner);
        section.filter(|_| self.roles[owner].depth > 0)
    }

    async fn end(&mut self, session: i64) {
        self.killed.extend(self.journal.tag(session));
        self.server.kill(session).await;
    }

    /// Asks a task that is idle how much of what it has it knows to be lost.
    async fn count_lost(&mut self, owner: usize) -> usize {
        self.tell(owner, Command::Check);
        tokio::task::yield_now().await;
        self.hear();
        self.roles[owner].lost
    }
}
