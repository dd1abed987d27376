use std::{future::poll_fn, task::Poll};

use futures::{FutureExt, future::BoxFuture};

/// When a future is dropped, counted in polls.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Interruption {
    /// As soon as the n-th poll is over: what it has asked for is under way.
    After(usize),
    /// When it is woken for the next poll: the answer is there, and nobody looks at it.
    Woken(usize),
}

/// Polls a future until it is dropped; `Some` if it comes to its end before that.
pub(crate) async fn interrupted<T>(
    mut future: BoxFuture<'_, T>,
    interruption: Interruption,
) -> Option<T> {
    let (mut left, at_once) = match interruption {
        Interruption::After(polls) => (polls, true),
        Interruption::Woken(polls) => (polls, false),
    };
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.poll_unpin(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 && at_once => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
