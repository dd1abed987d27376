//! Looks over the shoulders of sessions, so that it is known whose each one is and what it is
//! doing.

use std::{sync::Arc, time::Duration};

use advisory::{
    FencingToken, Holder, LockBackend, LockKey, LockSession, Report, Result, SessionId,
    spi::{Claim, Request, Turn, Waited},
};
use async_trait::async_trait;

use crate::{
    journal::{Journal, Tag},
    program::Turns,
};

/// A backend whose sessions are written down, and take turns of the given kind.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) inner: Box<dyn LockBackend>,
    pub(crate) journal: Arc<Journal>,
    pub(crate) turns: Turns,
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl LockBackend for Watched {
    async fn open(&self) -> Result<Box<dyn LockSession>> {
        let life = Life {
            tag: self.journal.open(),
            journal: Arc::clone(&self.journal),
        };
        let session = WatchedSession {
            inner: life.call(self.inner.open()).await?,
            turns: self.turns,
            life,
        };
        session.note();
        Ok(Box::new(session))
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }

    async fn check(&self) -> Result<Report> {
        self.inner.check().await
    }
}

#[derive(Debug)]
struct WatchedSession {
    inner: Box<dyn LockSession>,
    turns: Turns,
    /// After the session itself.
    life: Life,
}

impl WatchedSession {
    /// Writes down what the server calls the session, once that is known.
    fn note(&self) {
        if let Some(id) = self.inner.id() {
            self.life.journal.name(self.life.tag, id);
        }
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl LockSession for WatchedSession {
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
        let Life { journal, tag } = &self.life;
        for request in batch {
            match *request {
                Request::TryLock(claim) => journal.ask(*tag, claim),
                Request::Unlock(claim) => journal.free(*tag, claim),
            }
        }
        let answers = self.life.call(self.inner.submit(batch)).await;
        self.note();
        answers
    }

    async fn wait(&mut self, claim: Claim, mut turn: Turn) -> Result<Waited> {
        self.life.journal.ask(self.life.tag, claim);
        if self.turns == Turns::Endless {
            // What has waited long behind readers gets the longest turns there are, half a minute.
            turn.behind_readers = 16;
            turn.wanted = false;
        }
        self.life.call(self.inner.wait(claim, turn)).await
    }

    async fn holders(&mut self, key: LockKey) -> Result<Vec<Holder>> {
        self.life.call(self.inner.holders(key)).await
    }

    async fn fencing_token(&mut self) -> Result<FencingToken> {
        self.life.call(self.inner.fencing_token()).await
    }

    async fn probe(&mut self) -> Result<()> {
        self.life.call(self.inner.probe()).await
    }

    async fn recycle(self: Box<Self>) {
        let Self { inner, life, .. } = *self;
        life.call(inner.recycle()).await;
    }
}

/// Writes down the end of a session.
#[derive(Debug)]
struct Life {
    journal: Arc<Journal>,
    tag: Tag,
}

impl Life {
    async fn call<T>(&self, call: impl Future<Output = T>) -> T {
        self.journal.call(self.tag.owner, call).await
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.journal.end(self.tag);
    }
}
