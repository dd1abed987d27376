use std::{
    mem::{self, ManuallyDrop},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use advisory_core::{
    Error, LockBackend, Result,
    spi::{Claim, Request, Turn, Waited},
};
use async_trait::async_trait;
use futures_timer::Delay;

use crate::broken::{Fault, Sound};

const OVER: Waited = Waited::TurnOver {
    behind_readers: false,
};

#[derive(Debug)]
pub(crate) struct HasPatience;

#[async_trait]
impl Fault for HasPatience {
    async fn wait(&self, sound: &mut Sound, claim: Claim, mut turn: Turn) -> Result<Waited> {
        turn.patience = None;
        sound.session.wait(claim, turn).await
    }
}

/// Knows no turns, unless its caller's patience ends.
#[derive(Debug)]
pub(crate) struct WaitsForEver;

#[async_trait]
impl Fault for WaitsForEver {
    async fn wait(&self, sound: &mut Sound, claim: Claim, turn: Turn) -> Result<Waited> {
        loop {
            let waited = sound.session.wait(claim, turn).await?;
            if waited == Waited::Granted || turn.patience.is_some() {
                return Ok(waited);
            }
        }
    }
}

/// Says something else of how a wait has ended.
#[derive(Debug)]
pub(crate) struct Ends(pub(crate) fn(Waited) -> Waited);

#[async_trait]
impl Fault for Ends {
    async fn wait(&self, sound: &mut Sound, claim: Claim, turn: Turn) -> Result<Waited> {
        sound.session.wait(claim, turn).await.map(self.0)
    }
}

/// Whoever stands in the way of a wait that is over, says that it was readers, or that it was not.
pub(crate) fn behind(readers: bool, waited: Waited) -> Waited {
    match waited {
        Waited::TurnOver { .. } => Waited::TurnOver {
            behind_readers: readers,
        },
        Waited::Granted => Waited::Granted,
    }
}

/// Does something with what it has been granted.
#[derive(Debug)]
pub(crate) struct Granted(pub(crate) fn(Claim) -> Request);

#[async_trait]
impl Fault for Granted {
    async fn wait(&self, sound: &mut Sound, claim: Claim, turn: Turn) -> Result<Waited> {
        let waited = sound.session.wait(claim, turn).await?;
        if waited == Waited::Granted {
            sound.session.submit(&[(self.0)(claim)]).await?;
        }
        Ok(waited)
    }
}

/// Waits for a lock to come free, which one that is free does not.
#[derive(Debug)]
pub(crate) struct WaitsForARelease;

#[async_trait]
impl Fault for WaitsForARelease {
    async fn wait(&self, sound: &mut Sound, claim: Claim, turn: Turn) -> Result<Waited> {
        if sound.session.submit(&[Request::TryLock(claim)]).await? == [true] {
            sound.session.submit(&[Request::Unlock(claim)]).await?;
            return Ok(OVER);
        }
        sound.session.wait(claim, turn).await
    }
}

/// After its turn something of it waits on.
#[derive(Debug)]
pub(crate) struct StaysInTheQueue;

#[async_trait]
impl Fault for StaysInTheQueue {
    async fn wait(&self, sound: &mut Sound, claim: Claim, turn: Turn) -> Result<Waited> {
        let waited = sound.session.wait(claim, turn).await?;
        if waited != Waited::Granted {
            let mut left = sound.server.clone().open().await?;
            let mut waiting = Box::pin(async move { left.wait(claim, Turn::first(None)).await });
            assert!(futures::poll!(&mut waiting).is_pending());
            mem::forget(waiting);
        }
        Ok(waited)
    }
}

/// A wait that is dropped goes on.
#[derive(Debug)]
pub(crate) struct WaitsForThoseWhoAreGone;

#[async_trait]
impl Fault for WaitsForThoseWhoAreGone {
    async fn wait(&self, sound: &mut Sound, claim: Claim, turn: Turn) -> Result<Waited> {
        let mut waiter = sound.server.clone().open().await?;
        let waiting = Box::pin(async move { waiter.wait(claim, turn).await });
        let mut waiting = ManuallyDrop::new(waiting);
        let waited = waiting.as_mut().await;
        drop(ManuallyDrop::into_inner(waiting));
        waited
    }
}

#[derive(Debug)]
pub(crate) struct FindsNoDeadlock;

#[async_trait]
impl Fault for FindsNoDeadlock {
    async fn wait(&self, sound: &mut Sound, claim: Claim, turn: Turn) -> Result<Waited> {
        match sound.session.wait(claim, turn).await {
            Err(Error::Deadlock { .. }) => {
                Delay::new(Duration::from_millis(100)).await;
                Ok(OVER)
            }
            waited => waited,
        }
    }
}

/// A deadlock costs its victim what it holds.
#[derive(Debug)]
pub(crate) struct GivesUpEverything;

#[async_trait]
impl Fault for GivesUpEverything {
    async fn wait(&self, sound: &mut Sound, claim: Claim, turn: Turn) -> Result<Waited> {
        let waited = sound.session.wait(claim, turn).await;
        if waited.is_err() {
            let id = sound.session.id();
            for held in sound.server.held() {
                if id == Some(held.session) {
                    let claim = Claim {
                        key: held.key,
                        mode: held.mode,
                    };
                    sound.session.submit(&[Request::Unlock(claim)]).await?;
                }
            }
        }
        waited
    }
}

/// Once there is a deadlock, everybody is its victim.
#[derive(Debug, Default)]
pub(crate) struct ManyVictims(AtomicBool);

#[async_trait]
impl Fault for ManyVictims {
    async fn wait(&self, sound: &mut Sound, claim: Claim, turn: Turn) -> Result<Waited> {
        let waited = sound.session.wait(claim, turn).await;
        if waited.is_err() {
            self.0.store(true, Ordering::SeqCst);
        }
        match waited? {
            OVER if self.0.load(Ordering::SeqCst) => Err(Error::deadlock(None)),
            waited => Ok(waited),
        }
    }
}
