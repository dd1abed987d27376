use std::{
    mem,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use advisory_backend_memory::MemoryBackend;
use advisory_core::{
    Error, LockBackend, LockSession, Result,
    spi::{Claim, Request, Turn, Waited},
};
use async_trait::async_trait;

use crate::broken::{Fault, Sound};

#[derive(Debug)]
pub(crate) struct NeverLost;

impl Fault for NeverLost {
    fn is_lost(&self, _: &Sound) -> bool {
        false
    }
}

/// Goes on with a session that holds nothing of what the lost one held.
#[derive(Debug)]
pub(crate) struct Reconnects;

#[async_trait]
impl Fault for Reconnects {
    async fn submit(&self, sound: &mut Sound, batch: &[Request]) -> Result<Vec<bool>> {
        if sound.session.is_lost() {
            sound.session = sound.server.clone().open().await?;
        }
        sound.session.submit(batch).await
    }
}

#[derive(Debug)]
pub(crate) struct ProbesNothing;

#[async_trait]
impl Fault for ProbesNothing {
    async fn probe(&self, _: &mut Sound) -> Result<()> {
        Ok(())
    }
}

/// Listens only while it is asked something.
#[derive(Debug, Default)]
pub(crate) struct NoticesNothing(AtomicBool);

#[async_trait]
impl Fault for NoticesNothing {
    fn is_lost(&self, _: &Sound) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    async fn probe(&self, sound: &mut Sound) -> Result<()> {
        let alive = sound.session.probe().await;
        self.0.store(alive.is_err(), Ordering::SeqCst);
        alive
    }
}

#[derive(Debug)]
pub(crate) struct TakesALossForADeadlock;

#[async_trait]
impl Fault for TakesALossForADeadlock {
    async fn wait(&self, sound: &mut Sound, claim: Claim, turn: Turn) -> Result<Waited> {
        let waited = sound.session.wait(claim, turn).await;
        waited.map_err(|_| Error::deadlock(None))
    }
}

/// Keeps one session for the next to come, in whatever state it is.
#[derive(Debug, Default)]
pub(crate) struct LendsTheDead(Mutex<Option<Box<dyn LockSession>>>);

#[async_trait]
impl Fault for LendsTheDead {
    async fn open(&self, server: &MemoryBackend) -> Result<Box<dyn LockSession>> {
        let kept = mem::take(&mut *self.0.lock().unwrap());
        match kept {
            Some(session) => Ok(session),
            None => server.open().await,
        }
    }

    async fn recycle(&self, sound: Sound) {
        *self.0.lock().unwrap() = Some(sound.session);
    }
}
