use advisory_core::{
    Error, LockMode, Result,
    spi::{Claim, Request},
};
use async_trait::async_trait;

use crate::broken::{Fault, Sound};

/// Does something to the answers.
#[derive(Debug)]
pub(crate) struct Answers(pub(crate) fn(Vec<bool>) -> Vec<bool>);

#[async_trait]
impl Fault for Answers {
    async fn submit(&self, sound: &mut Sound, batch: &[Request]) -> Result<Vec<bool>> {
        sound.session.submit(batch).await.map(self.0)
    }
}

/// Sends one half of a batch before the other, and leaves the answers in that order.
#[derive(Debug)]
pub(crate) struct Halves(pub(crate) fn(&Request) -> bool);

#[async_trait]
impl Fault for Halves {
    async fn submit(&self, sound: &mut Sound, batch: &[Request]) -> Result<Vec<bool>> {
        let (mut first, second): (Vec<_>, Vec<_>) = batch.iter().partition(|one| (self.0)(one));
        first.extend(second);
        sound.session.submit(&first).await
    }
}

/// Takes before it gives back, whatever the batch says.
#[derive(Debug)]
pub(crate) struct LocksFirst;

#[async_trait]
impl Fault for LocksFirst {
    async fn submit(&self, sound: &mut Sound, batch: &[Request]) -> Result<Vec<bool>> {
        let mut answers = vec![false; batch.len()];
        for locks in [true, false] {
            for (request, answer) in batch.iter().zip(&mut answers) {
                if matches!(request, Request::TryLock(_)) == locks {
                    *answer = sound.session.submit(&[*request]).await? == [true];
                }
            }
        }
        Ok(answers)
    }
}

#[derive(Debug)]
pub(crate) struct RefusesEmptyBatches;

#[async_trait]
impl Fault for RefusesEmptyBatches {
    async fn submit(&self, sound: &mut Sound, batch: &[Request]) -> Result<Vec<bool>> {
        if batch.is_empty() {
            return Err(Error::backend("there is nothing to do"));
        }
        sound.session.submit(batch).await
    }
}

#[derive(Debug)]
pub(crate) struct StopsAtAMiss;

#[async_trait]
impl Fault for StopsAtAMiss {
    async fn submit(&self, sound: &mut Sound, batch: &[Request]) -> Result<Vec<bool>> {
        let mut answers = vec![false; batch.len()];
        for (request, answer) in batch.iter().zip(&mut answers) {
            *answer = sound.session.submit(&[*request]).await? == [true];
            if !*answer {
                break;
            }
        }
        Ok(answers)
    }
}

/// Says that it has unlocked whatever it was to unlock.
#[derive(Debug)]
pub(crate) struct UnlocksAnything;

#[async_trait]
impl Fault for UnlocksAnything {
    async fn submit(&self, sound: &mut Sound, batch: &[Request]) -> Result<Vec<bool>> {
        let answers = sound.session.submit(batch).await?;
        let answers = answers.into_iter().zip(batch);
        let unlocks = |request: &Request| matches!(request, Request::Unlock(_));
        Ok(answers
            .map(|(answer, request)| answer || unlocks(request))
            .collect())
    }
}

/// Unlocks a claim in the mode that it is held in.
#[derive(Debug)]
pub(crate) struct UnlocksInAnyMode;

#[async_trait]
impl Fault for UnlocksInAnyMode {
    async fn submit(&self, sound: &mut Sound, batch: &[Request]) -> Result<Vec<bool>> {
        let mut answers = sound.session.submit(batch).await?;
        for (request, answer) in batch.iter().zip(&mut answers) {
            if let Request::Unlock(claim) = request
                && !*answer
            {
                let other = Request::Unlock(other_mode(*claim));
                *answer = sound.session.submit(&[other]).await? == [true];
            }
        }
        Ok(answers)
    }
}

fn other_mode(claim: Claim) -> Claim {
    let mode = match claim.mode {
        LockMode::Exclusive => LockMode::Shared,
        LockMode::Shared => LockMode::Exclusive,
    };
    Claim { mode, ..claim }
}
