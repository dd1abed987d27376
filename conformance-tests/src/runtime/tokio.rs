use futures::future::{BoxFuture, LocalBoxFuture};
use tokio::runtime;

use super::Runtime;

/// A multi-threaded tokio runtime, which ends when this is dropped.
#[derive(Debug)]
pub struct Tokio {
    runtime: runtime::Runtime,
}

impl Tokio {
    /// Starts the runtime.
    ///
    /// # Panics
    ///
    /// If the system has no threads for it.
    #[must_use]
    pub fn new() -> Self {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("tokio starts");
        Self { runtime }
    }
}

impl Default for Tokio {
    fn default() -> Self {
        Self::new()
    }
}

impl Runtime for Tokio {
    fn block_on(&self, future: LocalBoxFuture<'_, ()>) {
        self.runtime.block_on(future);
    }

    fn spawn(&self, future: BoxFuture<'static, ()>) {
        self.runtime.spawn(future);
    }
}
