//! The backend, as the suites have to know it.

mod yielding;

use advisory_backend_memory::MemoryBackend;
use advisory_conformance_tests::{Harness, Observer, SeenLock, Space};
use advisory_core::{LockBackend, LockKey, spi::Claim};
use async_trait::async_trait;
use yielding::Yielding;

/// Gives each case a lock space of its own, unless it is to be a known one.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) known: Option<MemoryBackend>,
    /// Whether each call waits before its answer and behind it, as one to a server does.
    pub(crate) yields: bool,
}

#[async_trait]
impl Harness for Memory {
    async fn space(&self) -> Box<dyn Space> {
        Box::new(MemorySpace {
            backend: self.known.clone().unwrap_or_default(),
            yields: self.yields,
        })
    }
}

#[derive(Debug)]
struct MemorySpace {
    backend: MemoryBackend,
    yields: bool,
}

#[async_trait]
impl Space for MemorySpace {
    async fn backend(&self, connections: usize) -> Box<dyn LockBackend> {
        let backend = self.backend.clone().with_max_sessions(connections);
        if self.yields {
            Box::new(Yielding(backend))
        } else {
            Box::new(backend)
        }
    }

    fn observer(&self) -> &dyn Observer {
        self
    }

    async fn remove(&self) {}
}

#[async_trait]
impl Observer for MemorySpace {
    async fn held(&self) -> Vec<SeenLock> {
        let held = self.backend.held().into_iter();
        held.map(|holder| SeenLock {
            claim: Claim {
                key: holder.key,
                mode: holder.mode,
            },
            session: holder.session.number(),
        })
        .collect()
    }

    async fn waiters(&self, key: LockKey) -> usize {
        self.backend.waiters(key).len()
    }

    async fn sessions(&self) -> Vec<i64> {
        let sessions = self.backend.sessions().into_iter();
        sessions.map(|session| session.number()).collect()
    }

    async fn terminate(&self, session: i64) {
        let mut sessions = self.backend.sessions().into_iter();
        let session = sessions.find(|found| found.number() == session);
        assert!(self.backend.kill(session.expect("it is alive")));
    }
}
