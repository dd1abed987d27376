//! What the tests of sessions and of their server share.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake},
};

use advisory_core::{
    LockBackend, LockMode,
    spi::{Claim, LockSession, Request},
};
use futures::future::BoxFuture;

use crate::MemoryBackend;

pub(crate) type Session = Box<dyn LockSession>;

/// An exclusive claim.
pub(crate) fn x(key: i64) -> Claim {
    Claim {
        key: key.into(),
        mode: LockMode::Exclusive,
    }
}

/// A shared claim.
pub(crate) fn s(key: i64) -> Claim {
    Claim {
        key: key.into(),
        mode: LockMode::Shared,
    }
}

pub(crate) async fn open(backend: &MemoryBackend) -> Session {
    backend.open().await.expect("sessions are accepted")
}

/// A session that holds a claim.
pub(crate) async fn holder(backend: &MemoryBackend, claim: Claim) -> Session {
    let mut session = open(backend).await;
    let taken = session.submit(&[Request::TryLock(claim)]).await;
    assert_eq!(taken.expect("the session is alive"), [true]);
    session
}

/// A future that is polled by hand, and counts how often it was woken.
pub(crate) struct ByHand<'a, T> {
    future: BoxFuture<'a, T>,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl<'a, T> ByHand<'a, T> {
    pub(crate) fn new(future: impl Future<Output = T> + Send + 'a) -> Self {
        Self {
            future: Box::pin(future),
            wakes: Arc::default(),
        }
    }

    /// One that has been polled once and is pending.
    pub(crate) fn pending(future: impl Future<Output = T> + Send + 'a) -> Self {
        let mut by_hand = Self::new(future);
        assert!(by_hand.poll().is_pending());
        by_hand
    }

    pub(crate) fn poll(&mut self) -> Poll<T> {
        let waker = Arc::clone(&self.wakes).into();
        Pin::new(&mut self.future).poll(&mut Context::from_waker(&waker))
    }

    /// Whether it has been woken since this was last asked.
    pub(crate) fn woken(&self) -> bool {
        self.wakes.0.swap(0, Ordering::SeqCst) > 0
    }

    /// The outcome, for which it must have been woken.
    pub(crate) fn outcome(mut self) -> T {
        assert!(self.woken(), "nobody would poll it again");
        match self.poll() {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => panic!("it was woken for nothing"),
        }
    }
}
