use std::{future::poll_fn, task::Poll};

use advisory_core::{
    FencingToken, Holder, LockBackend, LockKey, LockSession, Result, SessionId,
    spi::{Claim, Request, Turn, Waited},
};
use async_trait::async_trait;

/// A backend whose every call is pending once before it is made, and once when it has been answered.
///
/// The memory backend answers most calls at once, so there would be nothing to interrupt.
#[derive(Debug)]
pub(crate) struct Yielding<T>(pub(crate) T);

async fn slowly<T>(call: impl Future<Output = T>) -> T {
    pending_once().await;
    let answer = call.await;
    pending_once().await;
    answer
}

async fn pending_once() {
    let mut pending = true;
    poll_fn(|cx| {
        if !pending {
            return Poll::Ready(());
        }
        pending = false;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[async_trait]
impl<B: LockBackend> LockBackend for Yielding<B> {
    async fn open(&self) -> Result<Box<dyn LockSession>> {
        let session = slowly(self.0.open()).await?;
        Ok(Box::new(Yielding(session)))
    }

    async fn close(&self) -> Result<()> {
        slowly(self.0.close()).await
    }
}

#[async_trait]
impl LockSession for Yielding<Box<dyn LockSession>> {
    fn id(&self) -> Option<SessionId> {
        self.0.id()
    }

    fn is_lost(&self) -> bool {
        self.0.is_lost()
    }

    fn notices_loss(&self) -> bool {
        self.0.notices_loss()
    }

    async fn submit(&mut self, batch: &[Request]) -> Result<Vec<bool>> {
        slowly(self.0.submit(batch)).await
    }

    async fn wait(&mut self, claim: Claim, turn: Turn) -> Result<Waited> {
        slowly(self.0.wait(claim, turn)).await
    }

    async fn holders(&mut self, key: LockKey) -> Result<Vec<Holder>> {
        slowly(self.0.holders(key)).await
    }

    async fn fencing_token(&mut self) -> Result<FencingToken> {
        slowly(self.0.fencing_token()).await
    }

    async fn probe(&mut self) -> Result<()> {
        slowly(self.0.probe()).await
    }

    async fn recycle(self: Box<Self>) {
        slowly(self.0.recycle()).await;
    }
}
