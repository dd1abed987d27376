use advisory_core::{LockBackend, Options, Sessions};
use async_trait::async_trait;

use crate::{Harness, Observer, Space};

/// A harness whose managers keep all their locks on one session.
#[derive(Debug)]
pub struct Sharing<H>(pub H);

#[async_trait]
impl<H: Harness> Harness for Sharing<H> {
    async fn space(&self) -> Box<dyn Space> {
        Box::new(SharingSpace(self.0.space().await))
    }
}

#[derive(Debug)]
struct SharingSpace(Box<dyn Space>);

#[async_trait]
impl Space for SharingSpace {
    async fn backend(&self, connections: usize) -> Box<dyn LockBackend> {
        self.0.backend(connections).await
    }

    fn options(&self) -> Options {
        self.0.options().sessions(Sessions::Shared)
    }

    fn observer(&self) -> &dyn Observer {
        self.0.observer()
    }

    fn expect_vain_unlocks(&self) {
        self.0.expect_vain_unlocks();
    }

    fn audit(&self) {
        self.0.audit();
    }

    async fn remove(&self) {
        self.0.remove().await;
    }
}
