use std::{sync::Arc, time::Duration};

use advisory_core::{FencingToken, Lock, Result, Section};
use futures::channel::oneshot;

use super::{LossEnv, within};
use crate::{Task, outcome::lost, sync::Gate};

/// A section in a task of its own, which lasts until it is told to end.
#[derive(Debug)]
pub(super) struct Running {
    task: Task<Result<()>>,
    may_end: Arc<Gate>,
    dropped: Arc<Gate>,
    token: FencingToken,
}

impl Running {
    /// Returns when the section runs, and has its token.
    pub(super) async fn start(env: &LossEnv, lock: Lock) -> Self {
        let (may_end, dropped) = (Arc::new(Gate::default()), Arc::new(Gate::default()));
        let (told, token) = oneshot::channel();
        let task = env.spawn({
            let (may_end, on_drop) = (Arc::clone(&may_end), OpenOnDrop(Arc::clone(&dropped)));
            async move {
                let section = lock.with_guard(async |guard| {
                    let _on_drop = on_drop;
                    let token = guard.fencing_token().await.expect("it is held");
                    told.send(token).expect("it is waited for");
                    may_end.passed().await;
                });
                section.await
            }
        });
        let token = token.await.expect("the section runs");
        Self {
            task,
            may_end,
            dropped,
            token,
        }
    }

    pub(super) fn token(&self) -> FencingToken {
        self.token
    }

    /// Returns when the library has stopped the section, which has to come soon.
    pub(super) async fn stopped_within(self, limit: Duration) {
        assert_eq!(lost(within(limit, self.task).await), Section::Stopped);
        assert!(self.dropped.is_open(), "the section lives on");
    }

    /// Has it end by itself.
    pub(super) async fn end(self) -> Result<()> {
        self.may_end.open();
        self.task.await
    }
}

#[derive(Debug)]
struct OpenOnDrop(Arc<Gate>);

impl Drop for OpenOnDrop {
    fn drop(&mut self) {
        self.0.open();
    }
}
