//! Workers share out the shards of a job among themselves; nobody assigns them.
//!
//! ```sh
//! cargo run --example shards          # the locks are in memory
//!
//! # The locks are on PostgreSQL:
//! DATABASE_URL=postgres://user@host/database cargo run --example shards
//! ```
//!
//! Each worker goes over all shards and takes what nobody else has. The lock keeps it the only one
//! at its shard. That a shard is done is noted while its lock is held, for whoever comes later.

use std::{env, error::Error, sync::Arc};

use advisory::{LockBackend, LockManager, MemoryBackend, TokioPostgresBackend};
use tokio::{
    sync::{Barrier, Mutex},
    task::JoinSet,
};

const WORKERS: usize = 3;
const SHARDS: usize = 8;

struct Job {
    shards: Vec<Shard>,
    /// Not for real life: it makes sure that the workers meet.
    each_has_a_shard: Barrier,
}

#[derive(Default)]
struct Shard {
    /// The worker that has processed it. In real life this is a row of a table, and not a mutex,
    /// which is here to notice if two workers are ever at one shard.
    done_by: Mutex<Option<usize>>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let replicas = match env::var("DATABASE_URL") {
        Ok(url) => replicas(TokioPostgresBackend::connect(&url).await?),
        Err(_) => replicas(MemoryBackend::new()),
    };
    let job = Arc::new(Job {
        shards: (0..SHARDS).map(|_| Shard::default()).collect(),
        each_has_a_shard: Barrier::new(WORKERS),
    });

    let mut workers = JoinSet::new();
    for (worker, locks) in replicas.iter().enumerate() {
        workers.spawn(work(worker, locks.clone(), Arc::clone(&job)));
    }
    let mut processed = 0;
    while let Some(share) = workers.join_next().await {
        processed += share??;
    }

    for (number, shard) in job.shards.iter().enumerate() {
        let worker = shard.done_by.lock().await.ok_or("a shard was left out")?;
        println!("shard {number}: worker {worker}");
    }
    assert_eq!(processed, SHARDS, "a shard was processed twice");
    println!("\n{WORKERS} workers processed {SHARDS} shards, each of them once.");

    for locks in replicas {
        locks.close().await?;
    }
    Ok(())
}

/// What one worker does. Returns how many shards it has processed.
///
/// One round will do here: a shard that is skipped is done, or another worker is at it. Where that
/// worker can fail, go round again until all are done.
async fn work(worker: usize, locks: LockManager, job: Arc<Job>) -> advisory::Result<usize> {
    let mut processed = 0;
    for (number, shard) in job.shards.iter().enumerate() {
        let lock = locks.named(format!("shard:{number}"));
        let claimed = lock.try_with(async || {
            let mut done_by = shard.done_by.try_lock().expect("no other worker is here");
            if done_by.is_some() {
                return false;
            }
            if processed == 0 {
                job.each_has_a_shard.wait().await;
            }
            // … the work …
            *done_by = Some(worker);
            true
        });
        match claimed.await? {
            Some(true) => processed += 1,
            Some(false) => {} // done before
            None => {}        // another worker is at it
        }
    }
    Ok(processed)
}

/// One lock manager per worker, as if each were a process of its own.
fn replicas(backend: impl LockBackend + Clone) -> Vec<LockManager> {
    (0..WORKERS)
        .map(|_| LockManager::new(backend.clone()))
        .collect()
}
