use std::thread;

use futures::{
    executor::block_on,
    future::{BoxFuture, LocalBoxFuture},
};

use super::Runtime;

/// No runtime at all: each task is a thread that polls its future.
#[derive(Clone, Copy, Debug, Default)]
pub struct Threads;

impl Runtime for Threads {
    fn block_on(&self, future: LocalBoxFuture<'_, ()>) {
        block_on(future);
    }

    fn spawn(&self, future: BoxFuture<'static, ()>) {
        thread::spawn(|| block_on(future));
    }
}
