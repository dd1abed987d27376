//! Many locks of one owner, in as few round trips as there can be.

use std::sync::Arc;

use super::{Hold, Owner, Verdict};
use crate::{
    Error, Result,
    context::Frame,
    patience::Patience,
    spi::{Claim, Request},
};

impl Owner {
    /// Tries to take claims for a frame, in one round trip; `None` in the place of each that is
    /// held by somebody else. On an error none is taken.
    pub(crate) async fn try_each(
        self: &Arc<Self>,
        claims: &[Claim],
        frame: &Arc<Frame>,
    ) -> Result<Vec<Option<Hold>>> {
        let mut holds: Vec<Option<Hold>> = claims.iter().map(|_| None).collect();
        let mut asked = Vec::new();
        let mut undecided = Vec::new();
        {
            let mut table = self.table();
            for (at, claim) in claims.iter().enumerate() {
                match table.request(*claim, frame) {
                    Verdict::Held(entry) => holds[at] = Some(self.hold(*claim, entry)),
                    Verdict::Ask(entry) => asked.push((at, self.pending(*claim, entry))),
                    // By another frame of this owner, or by an earlier place in the list.
                    Verdict::Undecided => undecided.push(at),
                    Verdict::Blocked => {}
                }
            }
        }
        self.check()?;
        asked.retain(|(_, pending)| !self.is_held_elsewhere(pending.claim));
        if !asked.is_empty() {
            let requests = asked.iter();
            let requests = requests.map(|(_, pending)| Request::TryLock(pending.claim));
            let done = self.line.submit(requests.collect()).await;
            let done = done.map_err(|error| self.or_lost(error))?;
            for ((at, pending), done) in asked.into_iter().zip(done) {
                if done {
                    let claim = pending.claim;
                    holds[at] = Some(self.hold(claim, pending.granted()));
                }
            }
        }
        for at in undecided {
            holds[at] = self.acquire(claims[at], frame, Patience::none()).await?;
        }
        Ok(holds)
    }

    /// Waits for all of the claims, which have to be sorted. None stays taken on an error.
    ///
    /// Whoever waits holds only what comes before: so two that do this never wait for each other.
    pub(crate) async fn acquire_all(
        self: &Arc<Self>,
        claims: &[Claim],
        frame: &Arc<Frame>,
        patience: Patience,
    ) -> Result<Vec<Hold>> {
        let mut taken = Vec::with_capacity(claims.len());
        while let Some(missing) = claims.get(taken.len()..).filter(|rest| !rest.is_empty()) {
            let mut tried = self.try_each(missing, frame).await?.into_iter();
            taken.extend(tried.by_ref().map_while(|hold| hold));
            let too_early: Vec<_> = tried.flatten().collect();
            Hold::release_all(too_early).await?;
            if let Some(claim) = claims.get(taken.len()) {
                let hold = self.acquire(*claim, frame, patience).await?;
                taken.push(hold.ok_or_else(Error::no_miss)?);
            }
        }
        Ok(taken)
    }
}

impl Hold {
    /// Releases holds, in one round trip for each session. All are freed, also if there is an
    /// error, which is the first one's, and if the future is dropped.
    pub(crate) async fn release_all(holds: Vec<Self>) -> Result<()> {
        let mut outcome = Ok(());
        // They stay holds until it is their turn, and free themselves if that never comes.
        let (leading, others): (Vec<_>, Vec<_>) = holds.into_iter().partition(Self::leads);
        for holds in of_each_owner(others) {
            outcome = outcome.and(Self::release_together(holds).await);
        }
        for hold in leading {
            outcome = outcome.and(hold.release().await);
        }
        outcome
    }

    /// Releases holds of one owner.
    async fn release_together(holds: Vec<Self>) -> Result<()> {
        let mut owner = None;
        let mut entries = Vec::with_capacity(holds.len());
        for mut hold in holds {
            owner = hold.take_owner().or(owner);
            entries.push((hold.claim(), hold.entry()));
        }
        let Some(owner) = owner else {
            return Ok(());
        };
        owner.give_back(entries).await?;
        Owner::leave(owner).await;
        Ok(())
    }
}

/// The holds of each owner by themselves.
fn of_each_owner(holds: Vec<Hold>) -> Vec<Vec<Hold>> {
    let mut owners: Vec<Vec<Hold>> = Vec::new();
    for hold in holds {
        let is_its =
            |holds: &&mut Vec<Hold>| holds.first().is_some_and(|first| hold.is_beside(first));
        match owners.iter_mut().find(is_its) {
            Some(holds) => holds.push(hold),
            None => owners.push(vec![hold]),
        }
    }
    owners
}
