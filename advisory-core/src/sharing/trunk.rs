use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use futures::future::BoxFuture;

use crate::{
    LockSession, Options, Result, SessionId,
    line::{Line, LineOwner, Vitals},
    spi::{Claim, Turn, Waited},
};

/// How long something may take that needs no waiting.
const AT_ONCE: Duration = Duration::from_millis(10);

/// The session that the branches share.
#[derive(Debug)]
pub(super) struct Trunk {
    line: Line,
    vitals: Arc<Vitals>,
}

impl Trunk {
    pub(super) fn new(session: Box<dyn LockSession>, options: &Options) -> Arc<Self> {
        let vitals = Arc::new(Vitals::new());
        Arc::new_cyclic(|trunk| Self {
            line: Line::new(
                session,
                Weak::<Self>::clone(trunk),
                Arc::clone(&vitals),
                options,
            ),
            vitals,
        })
    }

    pub(super) fn id(&self) -> Option<SessionId> {
        self.vitals.id()
    }

    pub(super) fn is_lost(&self) -> bool {
        self.line.check().is_err()
    }

    /// Keeps all branches waiting, so it is only for what is granted at once.
    pub(super) async fn wait(&self, claim: Claim) -> Result<Waited> {
        let turn = Turn {
            holding: true,
            wanted: true,
            ..Turn::first(Some(AT_ONCE))
        };
        self.line.wait(claim, turn).await
    }

    pub(super) async fn probe(&self) -> Result<()> {
        self.line.probe(self.line.answer_within()).await
    }
}

impl LineOwner for Trunk {
    fn line(&self) -> &Line {
        &self.line
    }

    /// The forest keeps it.
    fn leave(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}
