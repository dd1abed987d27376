//! A double that lies about one thing, to see that it is found out.

use std::time::Duration;

use advisory::{
    Error, FencingToken, Holder, LockBackend, LockKey, LockMode, LockSession, Report, Result,
    SessionId,
    spi::{Claim, Request, Turn, Waited},
};
use async_trait::async_trait;

use crate::server::{Double, Seen, Server};

/// What is wrong with a double. None of it shows unless owners meet in the right way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// Who has a key in both modes loses both with one of them.
    FreesBothModes,
    /// A timeout does not say who was in the way.
    HidesHolders,
    /// A deadlock is an error like any other.
    HidesDeadlocks,
}

#[derive(Debug)]
pub(crate) struct Liar {
    double: Double,
    lie: Lie,
}

impl Liar {
    pub(crate) fn new(lie: Lie) -> Self {
        let double = Double::default();
        Self { double, lie }
    }
}

#[async_trait(?Send)]
impl Server for Liar {
    fn backend(&self) -> Box<dyn LockBackend> {
        Box::new(LyingBackend {
            inner: self.double.backend(),
            lie: self.lie,
        })
    }

    async fn look(&self) -> Vec<Seen> {
        self.double.look().await
    }

    async fn kill(&self, session: i64) {
        self.double.kill(session).await;
    }

    fn tries_jump_queues(&self) -> bool {
        self.double.tries_jump_queues()
    }
}

#[derive(Debug)]
struct LyingBackend {
    inner: Box<dyn LockBackend>,
    lie: Lie,
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl LockBackend for LyingBackend {
    async fn open(&self) -> Result<Box<dyn LockSession>> {
        let inner = self.inner.open().await?;
        let lie = self.lie;
        Ok(Box::new(LyingSession { inner, lie }))
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }

    async fn check(&self) -> Result<Report> {
        self.inner.check().await
    }
}

#[derive(Debug)]
struct LyingSession {
    inner: Box<dyn LockSession>,
    lie: Lie,
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl LockSession for LyingSession {
    fn id(&self) -> Option<SessionId> {
        self.inner.id()
    }

    fn is_lost(&self) -> bool {
        self.inner.is_lost()
    }

    fn notices_loss(&self) -> bool {
        self.inner.notices_loss()
    }

    fn finds_deadlocks_within(&self) -> Option<Duration> {
        self.inner.finds_deadlocks_within()
    }

    async fn submit(&mut self, batch: &[Request]) -> Result<Vec<bool>> {
        if self.lie == Lie::FreesBothModes {
            let unlocked = batch.iter().filter_map(|request| match *request {
                Request::Unlock(claim) => Some(Request::Unlock(other_mode(claim))),
                Request::TryLock(_) => None,
            });
            let unlocked: Vec<_> = unlocked.collect();
            self.inner.submit(&unlocked).await?;
        }
        self.inner.submit(batch).await
    }

    async fn wait(&mut self, claim: Claim, turn: Turn) -> Result<Waited> {
        match self.inner.wait(claim, turn).await {
            Err(Error::Deadlock { .. }) if self.lie == Lie::HidesDeadlocks => {
                Err(Error::backend("something went wrong"))
            }
            waited => waited,
        }
    }

    async fn holders(&mut self, key: LockKey) -> Result<Vec<Holder>> {
        match self.lie {
            Lie::HidesHolders => Ok(Vec::new()),
            _ => self.inner.holders(key).await,
        }
    }

    async fn fencing_token(&mut self) -> Result<FencingToken> {
        self.inner.fencing_token().await
    }

    async fn probe(&mut self) -> Result<()> {
        self.inner.probe().await
    }

    async fn recycle(self: Box<Self>) {
        self.inner.recycle().await;
    }
}

fn other_mode(claim: Claim) -> Claim {
    let mode = match claim.mode {
        LockMode::Exclusive => LockMode::Shared,
        LockMode::Shared => LockMode::Exclusive,
    };
    Claim { mode, ..claim }
}
