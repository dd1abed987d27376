use std::{ops::Deref, sync::Arc};

use advisory_core::{LockManager, postgres::PostgresOptions};

use super::{Database, Guise, Postgres, RawClient, Server, Tap, cases, driver::all_of, left_out};
use crate::{
    Env, Runtime,
    run::{find, run},
};

/// How many connections there are behind a guise.
const CONNECTIONS: usize = 4;

/// What a case on PostgreSQL has to work with: an [`Env`], and its database.
#[derive(Debug)]
pub struct PostgresEnv {
    env: Env,
    harness: Postgres,
    database: Arc<Database>,
}

impl PostgresEnv {
    async fn new(runtime: Arc<dyn Runtime>, harness: Postgres) -> Self {
        let database = Arc::new(Server::shared().database().await);
        let space = harness.space_in(Arc::clone(&database)).await;
        Self {
            env: Env::new(runtime, Box::new(space)),
            harness,
            database,
        }
    }

    /// The database that is the case's lock space.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Announces what the case makes the server complain about, by a part of the text.
    pub fn expect_in_log(&self, text: &'static str) {
        self.database.expect_in_log(text);
    }

    /// A client of the database that the library has nothing to do with.
    pub async fn client(&self) -> RawClient {
        self.database.client().await
    }

    /// A manager on another database, or with options of its own in the URL.
    pub async fn manager_at(&self, url: &str) -> LockManager {
        let backend = self.harness.driver().backend(url, 5, all_of(5)).await;
        LockManager::new(backend)
    }

    /// The same with options of its own, also for what the tests run behind.
    pub async fn manager_with(&self, url: &str, options: PostgresOptions) -> LockManager {
        let backend = self.harness.driver().backend(url, 5, options).await;
        LockManager::new(backend)
    }

    /// A manager whose connections can be tampered with.
    pub async fn tapped_manager(&self, connections: usize) -> (LockManager, Tap) {
        self.tapped_manager_with(connections, all_of(connections))
            .await
    }

    /// The same with options of its own.
    pub async fn tapped_manager_with(
        &self,
        connections: usize,
        options: PostgresOptions,
    ) -> (LockManager, Tap) {
        self.tapped_manager_of(&self.database, connections, options)
            .await
    }

    /// The same on another database.
    pub async fn tapped_manager_of(
        &self,
        database: &Database,
        connections: usize,
        options: PostgresOptions,
    ) -> (LockManager, Tap) {
        let (driver, tap) = (self.harness.driver(), Tap::default());
        let url = database.url();
        let backend = driver.tapped(url, connections, options, &tap).await;
        (LockManager::new(backend), tap)
    }

    /// Two managers as of two processes, behind what plays a server or a pooler.
    pub async fn disguised(&self, guise: Guise, options: PostgresOptions) -> [LockManager; 2] {
        let (driver, tap) = (self.harness.driver(), Tap::disguised(guise));
        let url = self.database.url();
        let options = options.max_sessions(CONNECTIONS);
        let backend = driver.tapped(url, CONNECTIONS, options, &tap).await;
        let backend = Arc::new(backend);
        [(); 2].map(|()| LockManager::new(Arc::clone(&backend)))
    }

    /// Whether the pools put all settings of a connection back before they lend it again.
    #[must_use]
    pub fn pools_reset_settings(&self) -> bool {
        self.harness.driver().resets_settings()
    }
}

impl Deref for PostgresEnv {
    type Target = Env;

    fn deref(&self) -> &Env {
        &self.env
    }
}

/// Runs one case of the list for PostgreSQL; the tests that
/// [`postgres_suite!`](crate::postgres_suite) generates call it.
///
/// # Panics
///
/// If the case fails, does not end, or does not exist.
pub fn run_postgres_case(harness: Postgres, runtime: impl Runtime, name: &str) {
    let runtime: Arc<dyn Runtime> = Arc::new(runtime);
    let case = find(cases::LIST, name);
    if left_out(name) {
        return;
    }
    run(
        &*Arc::clone(&runtime),
        case,
        async || PostgresEnv::new(runtime, harness).await,
        async |case, outcome| case.env.end(outcome).await,
    );
}
