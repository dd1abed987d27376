//! A backend that panics costs the session it panicked on, and nobody has to wait for it.

mod broken;
mod memory;

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
};

use advisory_conformance_tests::{Harness, Space};
use advisory_core::{Error, LockGuard, LockManager, Result, spi::Request};
use async_trait::async_trait;
use broken::{Broken, Fault, Sound};
use futures::{FutureExt, future::BoxFuture};

/// Once lit it leaves calls pending, and once burnt it panics.
#[derive(Clone, Debug, Default)]
struct Fuse {
    state: Arc<AtomicUsize>,
    /// Of the call that is pending.
    waker: Arc<Mutex<Option<Waker>>>,
}

const UNLIT: usize = 0;
const LIT: usize = 1;
const BURNT: usize = 2;

impl Fuse {
    fn burn(&self) {
        self.state.store(BURNT, SeqCst);
        if let Some(waker) = self.waker.lock().unwrap().take() {
            waker.wake();
        }
    }
}

#[async_trait]
impl Fault for Fuse {
    async fn submit(&self, sound: &mut Sound, batch: &[Request]) -> Result<Vec<bool>> {
        poll_fn(|cx| match self.state.load(SeqCst) {
            UNLIT => Poll::Ready(()),
            LIT => {
                *self.waker.lock().unwrap() = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => panic!("the backend panics"),
        })
        .await;
        sound.session.submit(batch).await
    }
}

/// A waker that counts.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A task that is polled by hand.
struct ByHand<'a, T> {
    future: BoxFuture<'a, T>,
    wakes: Arc<Wakes>,
}

impl<'a, T> ByHand<'a, T> {
    fn new(future: impl Future<Output = T> + Send + 'a) -> Self {
        let (future, wakes) = (future.boxed(), Arc::default());
        Self { future, wakes }
    }

    fn poll(&mut self) -> Poll<T> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        self.future.poll_unpin(&mut Context::from_waker(&waker))
    }

    fn forget_wakes(&self) {
        self.wakes.0.store(0, SeqCst);
    }

    /// What it comes to. It has to have been woken for that.
    fn outcome(mut self) -> T {
        assert!(self.wakes.0.load(SeqCst) > 0, "nobody would poll it again");
        match self.poll() {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => panic!("it waits on"),
        }
    }
}

async fn manager(fuse: &Fuse) -> (Box<dyn Space>, LockManager) {
    let space = Broken::by(fuse.clone()).space().await;
    let locks = LockManager::new(space.backend(2).await);
    (space, locks)
}

fn assert_lost(result: Result<LockGuard>) {
    assert!(matches!(result, Err(Error::Lost { .. })), "{result:?}");
}

#[tokio::test]
async fn the_caller_sees_it_and_the_session_is_lost() {
    let fuse = Fuse::default();
    let (space, locks) = manager(&fuse).await;
    let session = locks.session().await.unwrap();
    let held = session.lock(&locks.named("held")).await.unwrap();
    fuse.burn();
    let next = locks.named("next");
    AssertUnwindSafe(session.lock(&next))
        .catch_unwind()
        .await
        .unwrap_err();

    // The lock is free, and nobody thinks that it is held.
    assert_eq!(space.observer().held().await, []);
    assert!(session.is_lost() && held.is_lost());
    assert_lost(session.lock(&next).await);
    let released = held.release().await;
    assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");

    // The manager is as good as before.
    fuse.state.store(UNLIT, SeqCst);
    locks.named("held").with(async || ()).await.unwrap();
    drop(session);
    locks.close().await.unwrap();
}

#[tokio::test]
async fn those_who_wait_for_the_session_are_told() {
    let fuse = Fuse::default();
    let (space, locks) = manager(&fuse).await;
    let session = locks.session().await.unwrap();
    let held = session.lock(&locks.named("held")).await.unwrap();
    let [one, two, three] = ["one", "two", "three"].map(|name| locks.named(name));
    fuse.state.store(LIT, SeqCst);
    let mut under_way = ByHand::new(session.lock(&one));
    assert!(under_way.poll().is_pending());
    let mut queued = ByHand::new(session.lock(&two));
    assert!(queued.poll().is_pending());

    // Both are woken, and before they come to it somebody else polls the call of the first. It panics
    // on him.
    fuse.burn();
    under_way.forget_wakes();
    queued.forget_wakes();
    let mut unlucky = ByHand::new(session.lock(&three));
    catch_unwind(AssertUnwindSafe(|| unlucky.poll())).unwrap_err();
    drop(unlucky);

    assert_eq!(space.observer().held().await, []);
    assert_lost(under_way.outcome());
    assert_lost(queued.outcome());
    assert!(held.is_lost());
}
