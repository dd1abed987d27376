//! Waits until a step has had its effect.

use advisory::spi::Claim;

use super::Player;
use crate::{
    journal::Tag,
    moment::{Moment, SeenName},
    program::{Name, Patience, Turns},
    server::{Seen, has_cycle},
    task::Command,
};

impl Player<'_> {
    /// Waits until a step has had its effect.
    pub(super) async fn rest(&mut self) -> Moment {
        // The tasks run.
        tokio::task::yield_now().await;
        let restless = !self.until(Player::has_come_to_rest).await;
        self.lingering = self.linger().collect();
        for outcomes in self.heard.values_mut() {
            // Which of the sections around each other see a loss themselves is a matter of luck.
            outcomes.dedup_by(|next, first| first.is_stop() && next.is_stop());
        }
        let (held, waiting) = self.look.iter().partition::<Vec<_>, _>(|seen| seen.granted);
        Moment {
            outcomes: std::mem::take(&mut self.heard),
            held: held.into_iter().map(|seen| self.name(seen)).collect(),
            waiting: waiting.into_iter().map(|seen| self.name(seen)).collect(),
            waiting_inside: self.waiting_inside.clone(),
            restless,
        }
    }

    async fn has_come_to_rest(&mut self) -> bool {
        self.hear();
        let mut look = self.server.look().await;
        look.retain(|seen| self.keys.contains(&seen.claim.key));
        self.look = look;
        // What is heard after the look may have changed what was seen.
        let heard = self.hear();
        let busy = (0..self.roles.len()).filter(|owner| self.roles[*owner].at.is_some());
        let inside = busy.filter(|owner| self.wait_of(*owner).is_none());
        let inside = inside.collect();
        let before = std::mem::replace(&mut self.waiting_inside, inside);
        // For an instant, a wait may look as if it were one for itself.
        !heard && self.waiting_inside.is_subset(&before) && self.is_at_rest()
    }

    /// Whether nothing is going on: what was sent has arrived, and who waits does so for good.
    fn is_at_rest(&self) -> bool {
        let seen_at_rest = self.look.iter().all(|seen| {
            self.journal.tag(seen.session).is_some_and(|session| {
                let stays = match self.turns {
                    // Nobody wants what was waited for to the end.
                    _ if seen.granted => !self.lingering.contains(&(session, seen.claim)),
                    Turns::Endless => seen.checked,
                    Turns::Natural => self.roles[session.owner].at.is_some(),
                };
                stays && !self.journal.has_freed(session, seen.claim)
            })
        });
        let mut roles = self.roles.iter().enumerate();
        let roles_at_rest = roles.all(|(owner, role)| match role.at {
            // Who waits, but not for the server, waits for itself.
            None
            | Some(
                Command::Lock(_, Patience::Unlimited) | Command::Enter(_, Patience::Unlimited),
            ) => {
                let waits = self.wait_of(owner).is_some() || !self.journal.is_calling(owner);
                waits && !self.is_to_be_stopped(owner)
            }
            Some(_) => false,
        });
        seen_at_rest && roles_at_rest && !has_cycle(&self.look)
    }

    /// The waits that their owners have dropped, and that go on.
    fn linger(&self) -> impl Iterator<Item = (Tag, Claim)> {
        self.look.iter().filter_map(|seen| {
            let session = self.journal.tag(seen.session)?;
            let lingers = !seen.granted && self.roles[session.owner].at.is_none();
            lingers.then_some((session, seen.claim))
        })
    }

    fn name(&self, seen: &Seen) -> SeenName {
        let key = self.keys.iter().position(|key| *key == seen.claim.key);
        SeenName {
            session: self.journal.tag(seen.session),
            name: Name {
                key: key.expect("only the program's keys are looked at"),
                mode: seen.claim.mode,
            },
        }
    }
}
