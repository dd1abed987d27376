//! The requests of tasks that share a session travel together.

mod broken;
mod memory;

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use advisory_conformance_tests::Harness;
use advisory_core::{LockManager, Options, Result, Sessions, spi::Request};
use async_trait::async_trait;
use broken::{Broken, Fault, Sound};
use futures::{
    StreamExt,
    channel::mpsc::{UnboundedReceiver, unbounded},
    executor::LocalPool,
    task::LocalSpawnExt,
};

const TASKS: usize = 8;
const CYCLES: usize = 4;

/// What was asked of a session, and how often it was looked at.
#[derive(Debug, Default)]
struct Counts {
    /// How many requests came at once.
    batches: Mutex<Vec<usize>>,
    polls: AtomicUsize,
}

/// Answers when it is told to.
#[derive(Debug)]
struct Counting {
    counts: Arc<Counts>,
    may_answer: futures::lock::Mutex<UnboundedReceiver<()>>,
}

#[async_trait]
impl Fault for Counting {
    async fn submit(&self, sound: &mut Sound, batch: &[Request]) -> Result<Vec<bool>> {
        self.counts.batches.lock().unwrap().push(batch.len());
        let mut may_answer = pin!(async { self.may_answer.lock().await.next().await });
        poll_fn(|cx| {
            self.counts.polls.fetch_add(1, SeqCst);
            may_answer.as_mut().poll(cx)
        })
        .await;
        sound.session.submit(batch).await
    }
}

/// Tasks take and release a lock of their own each, on one session.
fn run() -> Arc<Counts> {
    let counts = Arc::new(Counts::default());
    let (answers, may_answer) = unbounded();
    let harness = Broken::by(Counting {
        counts: Arc::clone(&counts),
        may_answer: may_answer.into(),
    });
    let mut executor = LocalPool::new();
    let locks = executor.run_until(async {
        let backend = harness.space().await.backend(1).await;
        LockManager::with_options(backend, Options::new().sessions(Sessions::Shared))
    });
    for task in 0..TASKS {
        let lock = locks.named(format!("tenant:{task}"));
        let cycles = async move {
            for _ in 0..CYCLES {
                lock.lock().await.unwrap().release().await.unwrap();
            }
        };
        executor.spawner().spawn_local(cycles).unwrap();
    }
    while counts.batches.lock().unwrap().iter().sum::<usize>() < 2 * TASKS * CYCLES {
        executor.run_until_stalled();
        answers.unbounded_send(()).unwrap();
    }
    executor.run();
    counts
}

/// Of those who are answered together none sends alone what he wants next.
#[test]
fn who_is_answered_together_asks_together() {
    let counts = run();
    // The first one of all finds the session idle, and the others come while he waits for his
    // answer.
    let batches = counts.batches.lock().unwrap();
    let [1, _, rest @ .., _] = &batches[..] else {
        panic!("{batches:?}");
    };
    assert!(
        rest.iter().all(|requests| *requests == TASKS),
        "{batches:?}"
    );
}

/// Whoever comes by while a statement is under way leaves it alone, unless it has rung.
#[test]
fn who_comes_by_does_not_look_in() {
    let counts = run();
    let statements = counts.batches.lock().unwrap().len();
    let polls = counts.polls.load(SeqCst);
    assert!(polls <= 2 * statements, "{polls} of {statements}");
}
