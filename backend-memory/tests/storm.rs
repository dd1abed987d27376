//! Thousands of acquisitions, most of which are cancelled or killed: nothing is left of them.

mod memory;

use advisory_backend_memory::MemoryBackend;
use advisory_conformance_tests::{Strike, runtime, storm};
use async_trait::async_trait;
use memory::Memory;

#[test]
fn leaves_nothing_behind() {
    let backend = MemoryBackend::new();
    let harness = Memory {
        known: Some(backend.clone()),
        yields: true,
    };
    storm(harness, runtime::Tokio::new(), Kill(backend));
}

#[derive(Debug)]
struct Kill(MemoryBackend);

#[async_trait]
impl Strike for Kill {
    async fn strike(&self, choice: u64) {
        let sessions = self.0.sessions();
        if let Some(last) = sessions.len().checked_sub(1) {
            // One that has ended meanwhile needs no killing.
            self.0
                .kill(sessions[usize::try_from(choice).unwrap_or_default() % (last + 1)]);
        }
    }
}
