use std::{
    env,
    io::{Read as _, stdin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use advisory_core::{LockManager, Options};
use fastrand::Rng;

use super::{LOSS_SEEN_WITHIN, SILENCE_SEEN_WITHIN, visitor::Visitor};
use crate::{
    Runtime, Task,
    postgres::{Postgres, driver::all_of},
    storm::number,
};

/// What a worker is told.
pub(super) const URL: &str = "ADVISORY_WORKER_URL";
pub(super) const SEED: &str = "ADVISORY_WORKER_SEED";

/// How many tasks a worker has. Each of them uses one connection at the most.
const TASKS: usize = 4;

/// How long the manager may take to close when the tasks have ended.
const CLOSED_WITHIN: Duration = Duration::from_secs(10);

/// A worker of [`chaos`](super::chaos()), which is a process of its own: the test binary, started
/// once more to run the test of this name alone. Without the environment of a worker it does
/// nothing.
///
/// It goes on until its input ends, and says all that happens.
///
/// # Panics
///
/// If a task fails in a way that no fault explains.
pub fn worker(harness: &Postgres, runtime: impl Runtime) {
    let (Ok(url), Some(seed)) = (env::var(URL), number(SEED)) else {
        return;
    };
    let ending = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&ending);
    thread::spawn(move || {
        // Ends when whoever has started this process closes the pipe, or has gone.
        let _ = stdin().read_to_end(&mut Vec::new());
        end.store(true, Relaxed);
    });
    runtime.block_on(Box::pin(async {
        let driver = harness.driver();
        let backend = driver.backend(&url, TASKS, all_of(TASKS)).await;
        let options = Options::new()
            .loss_seen_within(LOSS_SEEN_WITHIN)
            .silence_seen_within(SILENCE_SEEN_WITHIN)
            // As by default: a call that is under way when the network goes silent ends as soon.
            .answer_within(SILENCE_SEEN_WITHIN);
        let locks = LockManager::with_options(backend, options);
        let mut rng = Rng::with_seed(seed);
        let acquisitions = Arc::new(AtomicU64::new(0));
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let visitor = Visitor::new(
                    locks.clone(),
                    rng.fork(),
                    Arc::clone(&acquisitions),
                    Arc::clone(&ending),
                );
                Task::spawn(&runtime, visitor.run())
            })
            .collect();
        for task in tasks {
            task.await;
        }
        let closed = locks.close_timeout(CLOSED_WITHIN).await;
        closed.expect("nothing is held any more");
    }));
}
