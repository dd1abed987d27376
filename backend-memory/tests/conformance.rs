//! The suite that every backend must pass, on the memory backend and on each runtime.

use advisory_backend_memory::MemoryBackend;
use advisory_conformance_tests::{Harness, Observer, SeenLock, Space, runtime, suite};
use advisory_core::{LockBackend, LockKey, spi::Claim};
use async_trait::async_trait;

mod threads {
    use super::*;
    suite!(Memory, runtime::Threads);
}

mod tokio {
    use super::*;
    suite!(Memory, runtime::Tokio::new());
}

mod smol {
    use super::*;
    suite!(Memory, runtime::Smol);
}

mod async_std {
    use super::*;
    suite!(Memory, runtime::AsyncStd);
}

#[derive(Debug)]
struct Memory;

#[async_trait]
impl Harness for Memory {
    async fn space(&self) -> Box<dyn Space> {
        Box::new(MemorySpace(MemoryBackend::new()))
    }
}

#[derive(Debug)]
struct MemorySpace(MemoryBackend);

#[async_trait]
impl Space for MemorySpace {
    async fn backend(&self, connections: usize) -> Box<dyn LockBackend> {
        Box::new(self.0.clone().with_max_sessions(connections))
    }

    fn observer(&self) -> &dyn Observer {
        self
    }

    async fn remove(&self) {}
}

#[async_trait]
impl Observer for MemorySpace {
    async fn held(&self) -> Vec<SeenLock> {
        let held = self.0.held().into_iter();
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
        self.0.waiters(key).len()
    }

    async fn sessions(&self) -> Vec<i64> {
        let sessions = self.0.sessions().into_iter();
        sessions.map(|session| session.number()).collect()
    }

    async fn terminate(&self, session: i64) {
        let mut sessions = self.0.sessions().into_iter();
        let session = sessions.find(|found| found.number() == session);
        assert!(self.0.kill(session.expect("it is alive")));
    }
}
