//! Many locks at once, for sessions and managers.

use std::sync::Arc;

use crate::{
    Error, Lock, LockGuard, Result, context::Frame, owner::Owner, patience::Patience, spi::Claim,
};

/// Tries each of the locks, for a frame of the owner.
pub(crate) async fn try_each(
    owner: &Arc<Owner>,
    frame: &Arc<Frame>,
    locks: &[Lock],
) -> Result<Vec<Option<LockGuard>>> {
    let claims = claims(frame, locks)?;
    let holds = owner.try_each(&claims, frame).await?;
    let guards = holds.into_iter().zip(locks);
    let guards = guards.map(|(hold, lock)| hold.map(|hold| lock.guard(hold)));
    Ok(guards.collect())
}

/// Waits for all of the locks, for a frame of the owner. The guards are in the order of the locks.
pub(crate) async fn lock_all(
    owner: &Arc<Owner>,
    frame: &Arc<Frame>,
    locks: &[Lock],
    patience: Patience,
) -> Result<Vec<LockGuard>> {
    let mut sorted = claims(frame, locks)?;
    sorted.sort_unstable();
    sorted.dedup();
    let held = owner.acquire_all(&sorted, frame, patience).await;
    let mut held: Vec<_> = held
        .map_err(|error| about(error, locks))?
        .into_iter()
        .map(Some)
        .collect();
    let mut guards = Vec::with_capacity(locks.len());
    for lock in locks {
        let first = sorted.binary_search(&lock.claim()).ok();
        let hold = match first.and_then(|at| held.get_mut(at)?.take()) {
            Some(hold) => hold,
            // It is in the list once more; the owner has it already.
            None => {
                let hold = owner.acquire(lock.claim(), frame, Patience::none()).await?;
                hold.ok_or_else(Error::no_miss)?
            }
        };
        guards.push(lock.guard(hold));
    }
    Ok(guards)
}

fn claims(frame: &Frame, locks: &[Lock]) -> Result<Vec<Claim>> {
    locks.iter().map(|lock| lock.claim_of(frame)).collect()
}

/// Names the lock that a wait was for, where the error knows its holders' key.
fn about(error: Error, locks: &[Lock]) -> Error {
    let key = match &error {
        Error::Timeout { holders, .. } => holders.first().map(|holder| holder.key),
        _ => None,
    };
    match locks.iter().find(|lock| Some(lock.key()) == key) {
        Some(lock) => error.about(lock.label()),
        None => error,
    }
}
