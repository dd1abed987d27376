//! A lock from one callback to another: a guard that is kept between a hook before a job and the
//! hook after it.
//!
//! ```sh
//! cargo run --example hooks
//! ```
//!
//! Where you call the work yourself, `with` and `try_with` are simpler. A guard is for when
//! somebody else calls it: a job runner, a test framework, a plug-in host.

use std::error::Error;

use advisory::{Lock, LockGuard, LockManager, MemoryBackend};
use futures::executor::block_on;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// The hooks that let a job run on one replica at a time.
struct OneAtATime {
    lock: Lock,
    /// Held from `before` to `after`. Should the runner never come to `after`, because the job
    /// panics or its future is dropped, the lock is freed when the hooks are dropped.
    guard: Option<LockGuard>,
}

impl Hooks for OneAtATime {
    async fn before(&mut self) -> Result<bool> {
        self.guard = self.lock.try_lock().await?;
        Ok(self.guard.is_some())
    }

    async fn after(&mut self) -> Result<()> {
        if let Some(guard) = self.guard.take() {
            guard.release().await?;
        }
        Ok(())
    }
}

fn main() -> Result<()> {
    let cluster = MemoryBackend::new();
    let replica = || OneAtATime {
        lock: LockManager::new(cluster.clone()).named("imports:run"),
        guard: None,
    };
    let (mut here, mut there) = (replica(), replica());

    block_on(async {
        let failed = run(&mut here, async || {
            let meanwhile = run(&mut there, async || Ok(())).await?;
            assert_eq!(meanwhile, None, "the job ran on two replicas at once");
            println!("there: skipped, the job runs here");
            Err::<(), _>("the file is broken".into())
        });
        let error = failed.await.expect_err("the job fails");
        assert_eq!(error.to_string(), "the file is broken");
        println!("here: failed, {error}");

        let afterwards = run(&mut there, async || Ok(())).await?;
        assert_eq!(afterwards, Some(()), "the lock was not freed");
        println!("there: ran");
        Ok(())
    })
}

/// What a runner calls around a job.
trait Hooks {
    /// Whether the job is to run.
    async fn before(&mut self) -> Result<bool>;

    /// Comes after every job that ran, failed ones included.
    async fn after(&mut self) -> Result<()>;
}

/// A runner, as it might come with a framework. `None` is a job that was not to run.
async fn run<T>(hooks: &mut impl Hooks, job: impl AsyncFnOnce() -> Result<T>) -> Result<Option<T>> {
    if !hooks.before().await? {
        return Ok(None);
    }
    let outcome = job().await;
    hooks.after().await?;
    outcome.map(Some)
}
