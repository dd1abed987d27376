//! Where the batches of a broken backend can be kept waiting.

use std::{
    future::poll_fn,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Poll, Waker},
};

/// Lets so many through, at first all.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    passes: Arc<AtomicUsize>,
    waker: Arc<Mutex<Option<Waker>>>,
}

pub(crate) const ALL: usize = usize::MAX;

impl Gate {
    pub(crate) fn shut(&self) {
        self.passes.store(0, SeqCst);
    }

    /// So many may pass, and one is there that does.
    pub(crate) fn let_pass(&self, passes: usize) {
        self.passes.store(passes, SeqCst);
        let waker = self.waker.lock().unwrap().take();
        waker.expect("somebody is at the gate").wake();
    }

    pub(crate) async fn pass(&self) {
        poll_fn(|cx| {
            *self.waker.lock().unwrap() = Some(cx.waker().clone());
            let passes = self.passes.load(SeqCst);
            if passes == 0 {
                return Poll::Pending;
            }
            self.passes.store(passes - 1, SeqCst);
            Poll::Ready(())
        })
        .await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            passes: Arc::new(AtomicUsize::new(ALL)),
            waker: Arc::default(),
        }
    }
}
