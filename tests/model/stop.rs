//! Ends by force what a task is at.

use std::{
    future::poll_fn,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    task::Poll,
};

use futures::task::AtomicWaker;

/// Makes a task drop what it is at.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    requested: AtomicBool,
    waker: AtomicWaker,
}

impl Stop {
    pub(crate) fn request(&self) {
        self.requested.store(true, SeqCst);
        self.waker.wake();
    }

    /// Drops the work when that is asked for. Of several around each other it is the innermost one
    /// that does, because it is the first to look.
    pub(crate) async fn or<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            if let Poll::Ready(output) = work.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            match self.requested.swap(false, SeqCst) {
                true => Poll::Ready(None),
                false => Poll::Pending,
            }
        })
        .await
    }
}
