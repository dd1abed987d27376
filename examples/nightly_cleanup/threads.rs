//! Replicas as threads of this process. They have nothing in common but the lock space.

use std::{
    sync::{Barrier, mpsc},
    thread,
};

use advisory::{LockManager, MemoryBackend};
use futures::{channel::oneshot, executor::block_on};

use crate::{REPLICAS, Result, replica, replica::Outcome};

/// One lock manager per replica: made once, kept for all nights.
pub(crate) fn replicas() -> Vec<LockManager> {
    let backend = MemoryBackend::new();
    (0..REPLICAS)
        .map(|_| LockManager::new(backend.clone()))
        .collect()
}

/// Lets every replica try, and then lets the winner end.
pub(crate) fn night(replicas: &[LockManager]) -> Result<Vec<Outcome>> {
    let midnight = &Barrier::new(replicas.len());
    thread::scope(|scope| {
        let mut running = Vec::new();
        for locks in replicas {
            let (report, reported) = mpsc::channel();
            let (gate, all_have_tried) = oneshot::channel::<()>();
            let thread = scope.spawn(move || {
                // Nobody listens any more if the night has failed.
                let report = |outcome| _ = report.send(outcome);
                // The gate opens by being dropped.
                let all_have_tried = async { _ = all_have_tried.await };
                midnight.wait();
                block_on(replica::night(locks, report, all_have_tried))
            });
            running.push((reported, gate, thread));
        }

        let outcomes: Result<Vec<_>, _> = running
            .iter()
            .map(|(reported, ..)| reported.recv())
            .collect();
        for (_, gate, thread) in running {
            drop(gate);
            thread.join().map_err(|_| "a replica panicked")??;
        }
        Ok(outcomes?)
    })
}
