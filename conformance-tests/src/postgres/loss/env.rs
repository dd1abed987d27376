use std::{panic::resume_unwind, sync::Arc};

use advisory_core::{LockManager, Options};

use super::LIST;
use crate::{
    Runtime, Task,
    postgres::{Postgres, driver::all_of, left_out},
    run::{find, run},
};

/// How many connections a manager has.
const CONNECTIONS: usize = 5;

/// What a case has to work with: managers on whatever server it starts, and tasks. What has to be
/// stopped while the case does something else, or blocks, runs in a task.
#[derive(Debug)]
pub struct LossEnv {
    runtime: Arc<dyn Runtime>,
    harness: Postgres,
}

impl LossEnv {
    pub(super) async fn manager(&self, url: &str) -> LockManager {
        self.manager_with(url, Options::new()).await
    }

    pub(super) async fn manager_with(&self, url: &str, options: Options) -> LockManager {
        self.manager_of(url, CONNECTIONS, options).await
    }

    pub(super) async fn manager_of(
        &self,
        url: &str,
        connections: usize,
        options: Options,
    ) -> LockManager {
        let driver = self.harness.driver();
        let backend = driver.backend(url, connections, all_of(connections)).await;
        LockManager::with_options(backend, options)
    }

    /// Runs a future in the background.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        Task::spawn(&*self.runtime, future)
    }
}

/// Runs one case of the list of losses; the tests that [`loss_suite!`](crate::loss_suite) generates
/// call it.
///
/// # Panics
///
/// If the case fails, does not end, or does not exist.
pub fn run_loss_case(harness: Postgres, runtime: impl Runtime, name: &str) {
    let runtime: Arc<dyn Runtime> = Arc::new(runtime);
    let case = find(LIST, name);
    if left_out(name) {
        return;
    }
    let env = LossEnv {
        runtime: Arc::clone(&runtime),
        harness,
    };
    run(
        &*runtime,
        case,
        async || env,
        async |_, outcome| {
            outcome.unwrap_or_else(|panic| resume_unwind(panic));
        },
    );
}
