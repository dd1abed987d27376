//! Memory backends that do one thing wrong.

use std::{fmt, sync::Arc};

use advisory_backend_memory::MemoryBackend;
use advisory_conformance_tests::{Harness, Observer, Space};
use advisory_core::{
    FencingToken, Holder, LockBackend, LockKey, LockSession, Result, SessionId,
    spi::{Claim, Request, Turn, Waited},
};
use async_trait::async_trait;

use crate::memory::Memory;

/// What is wrong with a backend. Whatever a fault leaves out is as it should be.
#[async_trait]
pub(crate) trait Fault: fmt::Debug + Send + Sync + 'static {
    async fn open(&self, server: &MemoryBackend) -> Result<Box<dyn LockSession>> {
        server.open().await
    }

    async fn close(&self, server: &MemoryBackend) -> Result<()> {
        server.close().await
    }

    fn id(&self, sound: &Sound) -> Option<SessionId> {
        sound.session.id()
    }

    fn is_lost(&self, sound: &Sound) -> bool {
        sound.session.is_lost()
    }

    async fn submit(&self, sound: &mut Sound, batch: &[Request]) -> Result<Vec<bool>> {
        sound.session.submit(batch).await
    }

    async fn wait(&self, sound: &mut Sound, claim: Claim, turn: Turn) -> Result<Waited> {
        sound.session.wait(claim, turn).await
    }

    async fn holders(&self, sound: &mut Sound, key: LockKey) -> Result<Vec<Holder>> {
        sound.session.holders(key).await
    }

    async fn fencing_token(&self, sound: &mut Sound) -> Result<FencingToken> {
        sound.session.fencing_token().await
    }

    async fn probe(&self, sound: &mut Sound) -> Result<()> {
        sound.session.probe().await
    }

    async fn recycle(&self, sound: Sound) {
        sound.session.recycle().await;
    }

    fn dropped(&self, sound: Sound) {
        drop(sound);
    }
}

/// The session as it would be without the fault.
#[derive(Debug)]
pub(crate) struct Sound {
    pub(crate) session: Box<dyn LockSession>,
    #[allow(dead_code, reason = "not the faults of every test look at it")]
    pub(crate) server: MemoryBackend,
}

/// The harness of backends with a fault, or with none.
#[derive(Clone, Debug)]
pub(crate) struct Broken(Arc<dyn Fault>);

impl Broken {
    pub(crate) fn by(fault: impl Fault) -> Self {
        Self(Arc::new(fault))
    }
}

#[async_trait]
impl Harness for Broken {
    async fn space(&self) -> Box<dyn Space> {
        let server = MemoryBackend::new();
        let memory = Memory {
            known: Some(server.clone()),
            ..Memory::default()
        };
        Box::new(BrokenSpace {
            fault: Arc::clone(&self.0),
            sound: memory.space().await,
            server,
        })
    }
}

#[derive(Debug)]
struct BrokenSpace {
    fault: Arc<dyn Fault>,
    sound: Box<dyn Space>,
    server: MemoryBackend,
}

#[async_trait]
impl Space for BrokenSpace {
    async fn backend(&self, connections: usize) -> Box<dyn LockBackend> {
        Box::new(BrokenBackend {
            fault: Arc::clone(&self.fault),
            server: self.server.clone().with_max_sessions(connections),
        })
    }

    fn observer(&self) -> &dyn Observer {
        self.sound.observer()
    }

    async fn remove(&self) {}
}

#[derive(Debug)]
struct BrokenBackend {
    fault: Arc<dyn Fault>,
    server: MemoryBackend,
}

#[async_trait]
impl LockBackend for BrokenBackend {
    async fn open(&self) -> Result<Box<dyn LockSession>> {
        let session = self.fault.open(&self.server).await?;
        Ok(Box::new(BrokenSession {
            fault: Arc::clone(&self.fault),
            sound: Some(Sound {
                session,
                server: self.server.clone(),
            }),
        }))
    }

    async fn close(&self) -> Result<()> {
        self.fault.close(&self.server).await
    }
}

#[derive(Debug)]
struct BrokenSession {
    fault: Arc<dyn Fault>,
    /// `None` once it has ended.
    sound: Option<Sound>,
}

impl BrokenSession {
    fn look(&self) -> (&dyn Fault, &Sound) {
        let sound = self.sound.as_ref().expect("it has not ended");
        (&*self.fault, sound)
    }

    fn parts(&mut self) -> (&dyn Fault, &mut Sound) {
        let sound = self.sound.as_mut().expect("it has not ended");
        (&*self.fault, sound)
    }
}

#[async_trait]
impl LockSession for BrokenSession {
    fn id(&self) -> Option<SessionId> {
        let (fault, sound) = self.look();
        fault.id(sound)
    }

    fn is_lost(&self) -> bool {
        let (fault, sound) = self.look();
        fault.is_lost(sound)
    }

    fn notices_loss(&self) -> bool {
        true
    }

    async fn submit(&mut self, batch: &[Request]) -> Result<Vec<bool>> {
        let (fault, sound) = self.parts();
        fault.submit(sound, batch).await
    }

    async fn wait(&mut self, claim: Claim, turn: Turn) -> Result<Waited> {
        let (fault, sound) = self.parts();
        fault.wait(sound, claim, turn).await
    }

    async fn holders(&mut self, key: LockKey) -> Result<Vec<Holder>> {
        let (fault, sound) = self.parts();
        fault.holders(sound, key).await
    }

    async fn fencing_token(&mut self) -> Result<FencingToken> {
        let (fault, sound) = self.parts();
        fault.fencing_token(sound).await
    }

    async fn probe(&mut self) -> Result<()> {
        let (fault, sound) = self.parts();
        fault.probe(sound).await
    }

    async fn recycle(mut self: Box<Self>) {
        if let Some(sound) = self.sound.take() {
            self.fault.recycle(sound).await;
        }
    }
}

impl Drop for BrokenSession {
    fn drop(&mut self) {
        if let Some(sound) = self.sound.take() {
            self.fault.dropped(sound);
        }
    }
}
