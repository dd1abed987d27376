use async_std::task;
use futures::future::{BoxFuture, LocalBoxFuture};

use super::Runtime;

/// The global executor of async-std.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsyncStd;

impl Runtime for AsyncStd {
    fn block_on(&self, future: LocalBoxFuture<'_, ()>) {
        task::block_on(future);
    }

    fn spawn(&self, future: BoxFuture<'static, ()>) {
        task::spawn(future);
    }
}
