//! One session for all locks of a manager.
//!
//! A session re-enters its own locks, so it cannot keep those apart who share it. What keeps them
//! apart is the [gate](gate): the server is only ever asked for what nobody here has or is after.

mod branch;
mod gate;
mod trunk;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use self::{branch::Branch, gate::Gate, trunk::Trunk};
use crate::{LockBackend, LockSession, Options, Report, Result, line::LineOwner};

/// A backend whose sessions are all branches of one session of another backend, the trunk.
///
/// The trunk stays open until the backend is closed. If it is lost, so is every branch that holds
/// something on it, and the next request opens another.
#[derive(Debug)]
pub(crate) struct SharedSessions {
    forest: Arc<Forest>,
}

/// What the branches have in common.
#[derive(Debug)]
struct Forest {
    backend: Box<dyn LockBackend>,
    options: Options,
    gate: Gate,
    trunk: Mutex<Option<Arc<Trunk>>>,
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
        let _planting = self.planting.lock().await;
        if let Some(trunk) = self.living_trunk() {
            return Ok(trunk);
        }
        let session = self.backend.open().await?;
        let trunk = Trunk::new(session, &self.options);
        let fallen = self.replace_trunk(Some(Arc::clone(&trunk)));
        drop(fallen);
        Ok(trunk)
    }

    fn living_trunk(&self) -> Option<Arc<Trunk>> {
        let trunk = self.trunk.lock().unwrap_or_else(PoisonError::into_inner);
        trunk.clone().filter(|trunk| !trunk.is_lost())
    }

    fn replace_trunk(&self, by: Option<Arc<Trunk>>) -> Option<Arc<Trunk>> {
        let mut trunk = self.trunk.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut trunk, by)
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
        if let Some(trunk) = self.forest.replace_trunk(None) {
            trunk.line().recycle().await;
        }
        self.forest.backend.close().await
    }

    async fn check(&self) -> Result<Report> {
        self.forest.backend.check().await
    }
}
