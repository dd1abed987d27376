use std::{
    future::Future,
    time::{Duration, Instant},
};

use futures::future::{Either, select};
use futures_timer::Delay;

use crate::{Error, Result, Stage};

/// How long after a timeout the server's answer is still waited for, so that a wait which ends by
/// itself is told from a server that stopped answering. Also the least time that a single try
/// gets, whose timeout may be zero.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// Beyond this a timeout is none. Also keeps sums of times far from overflowing.
pub(crate) const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// How long a caller is willing to wait, from the moment this was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    started: Instant,
    limit: Limit,
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    Try,
    After(Duration),
    Never,
}

impl Patience {
    /// Not willing to wait for the lock at all, though for the server.
    pub(crate) fn none() -> Self {
        Self::new(Limit::Try)
    }

    pub(crate) fn unlimited() -> Self {
        Self::new(Limit::Never)
    }

    pub(crate) fn timeout(timeout: Duration) -> Self {
        Self::new(if timeout < FOREVER {
            Limit::After(timeout)
        } else {
            Limit::Never
        })
    }

    fn new(limit: Limit) -> Self {
        Self {
            started: Instant::now(),
            limit,
        }
    }

    /// Whether to give up, without an error, as soon as the lock turns out to be held.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self.limit, Limit::Try)
    }

    /// Whether there is time for more than one try.
    pub(crate) fn waits(&self) -> bool {
        match self.limit {
            Limit::Try => false,
            Limit::After(limit) => !limit.is_zero(),
            Limit::Never => true,
        }
    }

    /// What is left; `None` is without limit. Zero: time to give up.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        match self.limit {
            Limit::After(limit) => Some(limit.saturating_sub(self.waited())),
            Limit::Try => Some(Duration::ZERO),
            Limit::Never => None,
        }
    }

    pub(crate) fn waited(&self) -> Duration {
        self.started.elapsed()
    }

    /// The error of a caller whose patience has ended.
    pub(crate) fn timed_out(&self, stage: Stage) -> Error {
        Error::Timeout {
            waited: self.waited(),
            stage,
            holders: Vec::new(),
            lock: None,
        }
    }

    /// Bounds work that ends by itself when patience does, if the server is well: gives it the
    /// grace period on top.
    pub(crate) async fn bound_answer<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        match self.limit {
            Limit::After(limit) => self.bound(work, limit + GRACE, Stage::Server).await,
            Limit::Try | Limit::Never => work.await,
        }
    }

    /// Bounds a checkout, which knows nothing of patience. A short timeout still leaves it the
    /// time to find an idle connection, or to open one.
    pub(crate) async fn bound_checkout<T>(
        &self,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match self.limit {
            Limit::After(limit) => self.bound(work, limit.max(GRACE), Stage::Connection).await,
            Limit::Try | Limit::Never => work.await,
        }
    }

    /// Bounds a wait for one's turn in a local queue.
    pub(crate) async fn bound_turn<T>(&self, turn: impl Future<Output = T>) -> Result<T> {
        let turn = async { Ok(turn.await) };
        match self.limit {
            Limit::After(limit) => self.bound(turn, limit, Stage::Lock).await,
            Limit::Try | Limit::Never => turn.await,
        }
    }

    /// Bounds a wait for somebody of this process, who needs no grace.
    pub(crate) async fn bound_local(&self, wait: impl Future, stage: Stage) -> Result<()> {
        let wait = std::pin::pin!(wait);
        match self.remaining() {
            None => drop(wait.await),
            Some(left) if left.is_zero() => return Err(self.timed_out(stage)),
            // Whether it was in time is for the caller's next look to find out.
            Some(left) => drop(select(wait, Delay::new(left)).await),
        }
        Ok(())
    }

    async fn bound<T>(
        &self,
        work: impl Future<Output = Result<T>>,
        limit: Duration,
        stage: Stage,
    ) -> Result<T> {
        let work = std::pin::pin!(work);
        let delay = Delay::new(limit.saturating_sub(self.waited()));
        match select(work, delay).await {
            Either::Left((result, _)) => result,
            Either::Right(((), _)) => Err(self.timed_out(stage)),
        }
    }
}
