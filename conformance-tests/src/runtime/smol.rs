use futures::future::{BoxFuture, LocalBoxFuture};

use super::Runtime;

/// The global executor of smol.
#[derive(Clone, Copy, Debug, Default)]
pub struct Smol;

impl Runtime for Smol {
    fn block_on(&self, future: LocalBoxFuture<'_, ()>) {
        smol::block_on(future);
    }

    fn spawn(&self, future: BoxFuture<'static, ()>) {
        smol::spawn(future).detach();
    }
}
