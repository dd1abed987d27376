//! What cases use to prove who is where: gates instead of sleeps.

use std::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};

use async_lock::{Barrier, OnceCell};
use futures::future::{Either, select};
use futures_timer::Delay;

/// How long anything may take that is sure to come. Generous, for a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// Opened once, from anywhere; until then everybody waits in front of it.
#[derive(Debug, Default)]
pub(crate) struct Gate(OnceCell<()>);

impl Gate {
    pub(crate) fn open(&self) {
        // Already open is open.
        let _ = self.0.set_blocking(());
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.is_initialized()
    }

    pub(crate) async fn passed(&self) {
        self.0.wait().await;
    }
}

/// Where tasks wait for each other: nobody goes on before all have come.
#[derive(Debug)]
pub(crate) struct Rendezvous(Barrier);

impl Rendezvous {
    pub(crate) fn of(tasks: usize) -> Self {
        Self(Barrier::new(tasks))
    }

    pub(crate) async fn reached(&self) {
        self.0.wait().await;
    }
}

/// A counter that loses updates unless its users exclude each other: it reads, lets others run,
/// and writes.
#[derive(Debug, Default)]
pub(crate) struct RacyCounter(AtomicUsize);

impl RacyCounter {
    pub(crate) async fn increment(&self) {
        let value = self.0.load(SeqCst);
        pause(Duration::from_millis(1)).await;
        self.0.store(value + 1, SeqCst);
    }

    pub(crate) fn value(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// What a future comes to, unless it takes longer than this.
pub(crate) async fn within<F: Future + Unpin>(limit: Duration, future: F) -> Option<F::Output> {
    match select(future, Delay::new(limit)).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(_) => None,
    }
}

/// Lets time pass, on any runtime.
pub(crate) async fn pause(time: Duration) {
    Delay::new(time).await;
}
