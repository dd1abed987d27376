use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, resume_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use futures::{
    FutureExt,
    channel::oneshot,
    future::{AbortHandle, Abortable, Aborted},
};

use crate::Runtime;

type Ended<T> = Result<Result<T, Aborted>, Box<dyn Any + Send>>;

/// A future that runs in the background, on whatever runtime.
///
/// Awaiting it gives its output, or its panic. Dropping it lets it run on.
#[must_use = "a task whose output nobody looks at may fail unseen"]
pub struct Task<T> {
    ended: oneshot::Receiver<Ended<T>>,
    abort: AbortHandle,
}

impl<T: Send + 'static> Task<T> {
    pub(crate) fn spawn(
        runtime: &dyn Runtime,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Self {
        let (sender, ended) = oneshot::channel();
        let (abort, registration) = AbortHandle::new_pair();
        let future = Abortable::new(future, registration);
        runtime.spawn(Box::pin(async move {
            // The future is dropped before its end is told.
            let result = AssertUnwindSafe(future).catch_unwind().await;
            // Nobody may be there to hear it.
            let _ = sender.send(result);
        }));
        Self { ended, abort }
    }

    /// Drops the future, wherever it is, and returns when that is done. `Some` if it came to its
    /// end first.
    ///
    /// # Panics
    ///
    /// If the task has.
    pub async fn cancel(self) -> Option<T> {
        self.abort.abort();
        match self.ended.await.expect("the runtime polls the task") {
            Ok(output) => output.ok(),
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.ended
            .poll_unpin(cx)
            .map(|ended| match ended.expect("the runtime polls the task") {
                Ok(Ok(output)) => output,
                Ok(Err(Aborted)) => unreachable!("cancelling consumes the task"),
                Err(panic) => resume_unwind(panic),
            })
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}
