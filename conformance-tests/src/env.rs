use std::{
    panic::resume_unwind,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use advisory_core::{LockBackend, LockKey, LockManager, LockMode, LockSession, Options};

use crate::{
    Runtime, SeenLock, Space, Task,
    sync::{DEADLINE, pause},
};

/// How many connections a manager has where a case does not care.
const CONNECTIONS: usize = 10;

/// How often something is looked at that nobody announces.
const INTERVAL: Duration = Duration::from_millis(5);

/// What a case has to work with: a lock space of its own, managers on it, tasks, and eyes.
#[derive(Debug)]
pub struct Env {
    runtime: Arc<dyn Runtime>,
    space: Box<dyn Space>,
}

impl Env {
    pub(crate) fn new(runtime: Arc<dyn Runtime>, space: Box<dyn Space>) -> Self {
        Self { runtime, space }
    }

    /// Ends a case that has gone well.
    pub(crate) async fn remove(self) {
        self.end(Ok(())).await;
    }

    /// Cleans up after a case, and fails if the case has, or if something is to be said against it.
    pub(crate) async fn end(self, outcome: thread::Result<()>) {
        self.space.remove().await;
        outcome.unwrap_or_else(|panic| resume_unwind(panic));
        self.space.audit();
    }

    /// A manager with a pool of its own, so as good as another process.
    pub async fn manager(&self) -> LockManager {
        self.manager_with_pool_of(CONNECTIONS).await
    }

    /// A manager with a pool of its own, of this size.
    pub async fn manager_with_pool_of(&self, connections: usize) -> LockManager {
        self.manager_with(connections, self.space.options()).await
    }

    /// The same with options of its own.
    pub async fn manager_with(&self, connections: usize, options: Options) -> LockManager {
        LockManager::with_options(self.backend(connections).await, options)
    }

    /// The options that a manager has where a case does not care.
    #[must_use]
    pub fn options(&self) -> Options {
        self.space.options()
    }

    /// A backend with a pool of its own, of this size, for what only a backend can be asked.
    pub async fn backend(&self, connections: usize) -> Box<dyn LockBackend> {
        self.space.backend(connections).await
    }

    /// A session of a backend of its own, so as good as another process's.
    ///
    /// # Panics
    ///
    /// If there is none to be had.
    pub async fn session(&self) -> Box<dyn LockSession> {
        let opened = self.backend(1).await.open().await;
        opened.expect("a session of a pool that nobody uses")
    }

    /// See [`Space::expect_vain_unlocks`].
    pub fn expect_vain_unlocks(&self) {
        self.space.expect_vain_unlocks();
    }

    /// Runs a future in the background.
    pub fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        Task::spawn(&*self.runtime, future)
    }

    /// Who holds the key.
    pub async fn holders(&self, key: LockKey) -> Vec<(i64, LockMode)> {
        self.held()
            .await
            .into_iter()
            .filter(|lock| lock.claim.key == key)
            .map(|lock| (lock.session, lock.claim.mode))
            .collect()
    }

    /// The one session that holds the key, exclusively.
    ///
    /// # Panics
    ///
    /// If that is not how it is held.
    pub async fn holder(&self, key: LockKey) -> i64 {
        let holders = self.holders(key).await;
        match holders[..] {
            [(session, LockMode::Exclusive)] => session,
            _ => panic!("{key} should be held once, exclusively: {holders:?}"),
        }
    }

    /// Everything that is held in the space.
    pub async fn held(&self) -> Vec<SeenLock> {
        self.space.observer().held().await
    }

    /// The sessions that are alive, in use or idle in a pool.
    pub async fn sessions(&self) -> Vec<i64> {
        self.space.observer().sessions().await
    }

    /// Ends a session by force.
    pub async fn terminate(&self, session: i64) {
        self.space.observer().terminate(session).await;
    }

    /// How many sessions wait for the key.
    pub async fn waiters(&self, key: LockKey) -> usize {
        self.space.observer().waiters(key).await
    }

    /// Returns when so many wait for the key.
    ///
    /// # Panics
    ///
    /// As all methods that wait, if it takes too long.
    pub async fn until_waiters(&self, key: LockKey, count: usize) {
        let started = Instant::now();
        loop {
            let waiters = self.waiters(key).await;
            if waiters == count {
                return;
            }
            assert!(
                started.elapsed() <= DEADLINE,
                "{waiters} wait for {key}, not {count}"
            );
            pause(INTERVAL).await;
        }
    }

    /// Returns when nobody holds the key.
    pub async fn until_free(&self, key: LockKey) {
        self.until_free_within(DEADLINE, key).await;
    }

    /// Returns when nobody holds the key, which must not take longer than this.
    pub async fn until_free_within(&self, limit: Duration, key: LockKey) {
        let what = format!("{key} is free");
        self.until(limit, &what, |held| {
            held.iter().all(|lock| lock.claim.key != key)
        })
        .await;
    }

    /// Returns when nothing in the space is held.
    pub async fn until_empty(&self) {
        self.until(DEADLINE, "nothing is held", <[_]>::is_empty)
            .await;
    }

    /// Returns when the session is no more.
    ///
    /// # Panics
    ///
    /// If it lives on.
    pub async fn until_ended(&self, session: i64) {
        let started = Instant::now();
        while self.sessions().await.contains(&session) {
            assert!(started.elapsed() <= DEADLINE, "session {session} lives on");
            pause(INTERVAL).await;
        }
    }

    async fn until(&self, limit: Duration, what: &str, wish: impl Fn(&[SeenLock]) -> bool) {
        let started = Instant::now();
        loop {
            let asked = started.elapsed();
            let held = self.held().await;
            if wish(&held) {
                return;
            }
            assert!(
                asked <= limit,
                "not within {limit:?}: {what}; there is {held:#?}"
            );
            pause(INTERVAL).await;
        }
    }
}
