//! One session for all locks of a manager.
//!
//! A session re-enters its own locks, so it cannot keep those apart who share it. What keeps them
//! apart is the [gate](gate): the server is only ever asked for what nobody here has or is after.

mod branch;
mod gate;
mod trunk;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures::future::{Either, select};

use self::{branch::Branch, gate::Gate, trunk::Trunk};
use crate::{
    LockBackend, LockSession, Options, Report, Result, limit::in_time, line::LineOwner, news::News,
};

/// A backend whose sessions are all branches of one session of another backend, the trunk.
///
/// The trunk stays open until the backend is closed. If it is lost, so is every branch that holds
/// something on it, and the next request opens another.
#[derive(Debug)]
pub(crate) struct SharedSessions {
    forest: Arc<Forest>,
}

/// How long the others wait for the one who opens a trunk, before they do so themselves.
const PLANTED_WITHIN: Duration = Duration::from_secs(1);

/// What the branches have in common.
#[derive(Debug)]
struct Forest {
    backend: Box<dyn LockBackend>,
    options: Options,
    gate: Gate,
    trunk: Mutex<Option<Arc<Trunk>>>,
    /// There is another one.
    planted: News,
    /// Held by the one who opens a trunk.
    planting: async_lock::Mutex<()>,
}

impl SharedSessions {
    pub(crate) fn new(backend: impl LockBackend, options: Options) -> Self {
        Self {
            forest: Arc::new(Forest {
                backend: Box::new(backend),
                options,
                gate: Gate::default(),
                trunk: Mutex::default(),
                planted: News::default(),
                planting: async_lock::Mutex::new(()),
            }),
        }
    }
}

impl Forest {
    /// The trunk, unless it has been lost; then a new one.
    async fn trunk(&self) -> Result<Arc<Trunk>> {
        if let Some(trunk) = self.living_trunk() {
            return Ok(trunk);
        }
        // Whoever plants one may have no mind to go on with it, or take his time.
        let _planting = in_time(self.planting.lock(), PLANTED_WITHIN).await;
        loop {
            let planted = self.planted.listen();
            if let Some(trunk) = self.living_trunk() {
                return Ok(trunk);
            }
            let Either::Left((session, _)) = select(self.backend.open(), planted).await else {
                continue;
            };
            let session = session?;
            if let Some(trunk) = self.living_trunk() {
                in_time(session.recycle(), self.options.answer_within).await;
                return Ok(trunk);
            }
            let trunk = Trunk::new(session, &self.options);
            let fallen = self.trunk_place().replace(Arc::clone(&trunk));
            drop(fallen);
            self.planted.tell();
            return Ok(trunk);
        }
    }

    fn living_trunk(&self) -> Option<Arc<Trunk>> {
        let trunk = self.trunk_place().clone();
        trunk.filter(|trunk| !trunk.is_lost())
    }

    fn trunk_place(&self) -> MutexGuard<'_, Option<Arc<Trunk>>> {
        // Replaced whole.
        self.trunk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl LockBackend for SharedSessions {
    async fn open(&self) -> Result<Box<dyn LockSession>> {
        let trunk = self.forest.trunk().await?;
        Ok(Box::new(Branch::new(Arc::clone(&self.forest), trunk)))
    }

    async fn close(&self) -> Result<()> {
        let trunk = self.forest.trunk_place().take();
        if let Some(trunk) = trunk {
            trunk.line().recycle().await;
        }
        self.forest.backend.close().await
    }

    async fn check(&self) -> Result<Report> {
        self.forest.backend.check().await
    }
}
