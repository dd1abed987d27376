//! The requests of tasks that share a session travel together.

mod broken;
mod memory;

use std::sync::{Arc, Mutex};

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

/// Answers when it is told to, and notes how many requests came at once.
#[derive(Debug)]
struct Counting {
    batches: Arc<Mutex<Vec<usize>>>,
    may_answer: futures::lock::Mutex<UnboundedReceiver<()>>,
}

#[async_trait]
impl Fault for Counting {
    async fn submit(&self, sound: &mut Sound, batch: &[Request]) -> Result<Vec<bool>> {
        self.batches.lock().unwrap().push(batch.len());
        self.may_answer.lock().await.next().await;
        sound.session.submit(batch).await
    }
}

/// Of those who are answered together none sends alone what he wants next.
#[test]
fn who_is_answered_together_asks_together() {
    let batches = Arc::new(Mutex::new(Vec::new()));
    let (answers, may_answer) = unbounded();
    let harness = Broken::by(Counting {
        batches: Arc::clone(&batches),
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
    while batches.lock().unwrap().iter().sum::<usize>() < 2 * TASKS * CYCLES {
        executor.run_until_stalled();
        answers.unbounded_send(()).unwrap();
    }
    executor.run();

    // The first one of all finds the session idle, and the others come while he waits for his
    // answer.
    let batches = batches.lock().unwrap();
    let [1, _, rest @ .., _] = &batches[..] else {
        panic!("{batches:?}");
    };
    assert!(
        rest.iter().all(|requests| *requests == TASKS),
        "{batches:?}"
    );
}
