use std::{sync::Arc, task::Poll, time::Duration};

use advisory_core::{
    Error, FencingToken, Holder, LockKey, Result,
    spi::{Claim, LockSession, Request, SessionId, Turn, Waited},
};
use async_trait::async_trait;
use futures::future::{Either, select};
use futures_timer::Delay;

use crate::{
    server::{Server, State},
    space::{Left, Place, Wait},
};

#[cfg(test)]
mod tests;

/// How long a turn is if somebody may want to use the session meanwhile.
const SHORT_TURN: Duration = Duration::from_millis(50);

/// How long a turn is of a session that holds nothing, so that nobody is likely to.
const LONG_TURN: Duration = Duration::from_secs(1);

/// What the turns of a writer grow to that always end behind readers.
const LONGEST_TURN: Duration = Duration::from_secs(30);

/// One owner of locks. Ends with its drop.
#[derive(Debug)]
pub(crate) struct MemorySession {
    server: Arc<Server>,
    id: SessionId,
    /// What it waited for when its last turn was over, and the place that it had in the queue.
    left: Option<(Claim, Place)>,
}

impl MemorySession {
    /// The session that the server has opened under this number.
    pub(crate) fn new(server: Arc<Server>, id: SessionId) -> Self {
        Self {
            server,
            id,
            left: None,
        }
    }

    /// Queues for the claim, where it left off if it is the one it has been waiting for.
    async fn queue(&mut self, claim: Claim) -> Result<Wait> {
        let place = match self.left.take() {
            Some((left, place)) if left == claim => Some(place),
            _ => None,
        };
        let queued = self.call(|state| Poll::Ready(state.locks.wait(self.id, claim, place)));
        queued
            .await?
            .map_err(|cycle| Error::deadlock(Some(cycle.to_string())))
    }

    async fn call<T>(&self, step: impl FnMut(&mut State) -> Poll<T>) -> Result<T> {
        self.server.call(self.id, step).await
    }
}

#[async_trait]
impl LockSession for MemorySession {
    fn id(&self) -> Option<SessionId> {
        Some(self.id)
    }

    fn is_lost(&self) -> bool {
        self.server.with(|state| !state.is_alive(self.id))
    }

    fn notices_loss(&self) -> bool {
        true
    }

    async fn submit(&mut self, batch: &[Request]) -> Result<Vec<bool>> {
        let begins_anew = |left: Claim| batch.contains(&Request::TryLock(left));
        self.left = self.left.filter(|(left, _)| !begins_anew(*left));
        self.call(|state| {
            let answers = batch.iter().map(|request| match *request {
                Request::TryLock(claim) => state.locks.try_lock(self.id, claim),
                Request::Unlock(claim) => state.locks.unlock(self.id, claim),
            });
            Poll::Ready(answers.collect())
        })
        .await
    }

    async fn wait(&mut self, claim: Claim, turn: Turn) -> Result<Waited> {
        if self.queue(claim).await? == Wait::Granted {
            return Ok(Waited::Granted);
        }
        let waiting = Waiting {
            server: &self.server,
            session: self.id,
            claim,
        };
        let granted = self.call(|state| match state.locks.is_waiting(self.id) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        });
        let left = match select(Box::pin(granted), Delay::new(length(turn))).await {
            Either::Left((granted, _)) => {
                granted?;
                None
            }
            // The server has to answer that, too, and it may have granted the claim by then.
            Either::Right(((), _)) => {
                self.call(|state| Poll::Ready(state.locks.leave(self.id)))
                    .await?
            }
        };
        waiting.answered();
        self.left = left.map(|left| (claim, left.place));
        Ok(match left {
            None => Waited::Granted,
            Some(Left { behind_readers, .. }) => Waited::TurnOver { behind_readers },
        })
    }

    async fn holders(&mut self, key: LockKey) -> Result<Vec<Holder>> {
        self.call(|state| Poll::Ready(state.holders(key))).await
    }

    async fn fencing_token(&mut self) -> Result<FencingToken> {
        self.call(|state| Poll::Ready(state.next_token())).await
    }

    async fn probe(&mut self) -> Result<()> {
        self.call(|_| Poll::Ready(())).await
    }

    async fn recycle(self: Box<Self>) {}
}

impl Drop for MemorySession {
    fn drop(&mut self) {
        self.server.with(|state| state.end(self.id));
    }
}

/// A wait whose outcome nobody has seen. The drop takes it back, whichever it is.
struct Waiting<'a> {
    server: &'a Server,
    session: SessionId,
    claim: Claim,
}

impl Waiting<'_> {
    fn answered(self) {
        std::mem::forget(self);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.server.with(|state| {
            if state.locks.leave(self.session).is_none() {
                state.locks.unlock(self.session, self.claim);
            }
        });
    }
}

/// How long to wait in one go.
fn length(turn: Turn) -> Duration {
    let length = if turn.wanted {
        SHORT_TURN
    } else {
        let base = if turn.holding { SHORT_TURN } else { LONG_TURN };
        // Each turn's end lets in the readers that are queued behind a writer.
        let doubled = base.saturating_mul(1 << turn.behind_readers.min(16));
        doubled.min(LONGEST_TURN)
    };
    turn.patience
        .map_or(length, |patience| patience.min(length))
}
