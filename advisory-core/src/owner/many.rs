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
    /// error, which is the first one's.
    pub(crate) async fn release_all(holds: Vec<Self>) -> Result<()> {
        let mut outcome = Ok(());
        let mut owners: Vec<(Arc<Owner>, Vec<Claim>)> = Vec::new();
        for mut hold in holds {
            if hold.leads() {
                outcome = outcome.and(hold.release().await);
                continue;
            }
            let Some(owner) = hold.take_owner() else {
                continue;
            };
            let freed = owner
                .forget(hold.claim(), hold.entry())
                .then(|| hold.claim());
            match owners.iter_mut().find(|(of, _)| Arc::ptr_eq(of, &owner)) {
                Some((_, claims)) => claims.extend(freed),
                None => owners.push((owner, freed.into_iter().collect())),
            }
        }
        for (owner, claims) in owners {
            let unlocked = owner.line.unlock(claims).await;
            if unlocked.is_ok() {
                Owner::leave(owner).await;
            }
            outcome = outcome.and(unlocked);
        }
        outcome
    }
}
