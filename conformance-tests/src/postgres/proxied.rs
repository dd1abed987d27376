use std::{ops::Deref, sync::Arc, time::Duration};

use advisory_core::{LockKey, LockManager, Options};

use super::{
    Database, Postgres, Proxy, RawClient, Server, cancellation,
    driver::all_of,
    left_out::{left_out, sessions_end},
};
use crate::{
    Env, Runtime,
    run::{find, run},
};

/// How soon a lock must be free once its connection is closed. An abandoned wait comes on top.
pub(super) const BOUND: Duration = Duration::from_secs(1);

/// What a case has to work with that plays tricks on connections: an [`Env`], whose managers go
/// straight to the server, and a proxy for those that do not.
#[derive(Debug)]
pub struct ProxiedEnv {
    env: Env,
    harness: Postgres,
    database: Arc<Database>,
    proxy: Proxy,
}

impl ProxiedEnv {
    async fn new(runtime: Arc<dyn Runtime>, harness: Postgres) -> Self {
        let database = Arc::new(Server::shared().database().await);
        let space = harness.space_in(Arc::clone(&database)).await;
        let proxy = Proxy::to(database.url()).await;
        Self {
            env: Env::new(runtime, Box::new(space)),
            harness,
            database,
            proxy,
        }
    }

    /// The proxy, which is this case's alone.
    #[must_use]
    pub fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// A client of the database that neither the library nor the proxy has to do with.
    pub async fn client(&self) -> RawClient {
        self.database.client().await
    }

    /// A manager whose connections go through the proxy. A server that does not answer is given up
    /// on soon.
    pub async fn proxied(&self, connections: usize) -> LockManager {
        self.proxied_with(connections, Duration::from_millis(300))
            .await
    }

    /// The same for a case that makes the server slow, but not silent.
    pub async fn proxied_with(&self, connections: usize, answer_within: Duration) -> LockManager {
        let driver = self.harness.driver();
        let backend = driver
            .backend(self.proxy.url(), connections, all_of(connections))
            .await;
        let options = Options::new().answer_within(answer_within);
        LockManager::with_options(backend, options)
    }

    /// The same with a pool of the backend's own, which is closed with it.
    pub async fn owned(&self, connections: usize, answer_within: Duration) -> LockManager {
        let driver = self.harness.driver();
        let backend = driver
            .owned(self.proxy.url(), connections, all_of(connections))
            .await;
        let options = Options::new().answer_within(answer_within);
        LockManager::with_options(backend, options)
    }

    /// Returns when the session is no more. Where a pooler keeps sessions for others there is
    /// nothing to wait for; cases look at the connections of the proxy, too.
    ///
    /// # Panics
    ///
    /// If it lives on.
    pub async fn until_ended(&self, session: i64) {
        if sessions_end() {
            self.env.until_ended(session).await;
        }
    }

    /// Whether the session still holds the key, and nobody else.
    pub async fn is_held_by(&self, key: LockKey, session: i64) -> bool {
        let holders = self.holders(key).await;
        holders.len() == 1 && holders[0].0 == session
    }
}

impl Deref for ProxiedEnv {
    type Target = Env;

    fn deref(&self) -> &Env {
        &self.env
    }
}

/// Runs one case of the list for cancellation; the tests that
/// [`cancellation_suite!`](crate::cancellation_suite) generates call it.
///
/// # Panics
///
/// If the case fails, does not end, or does not exist.
pub fn run_proxied_case(harness: Postgres, runtime: impl Runtime, name: &str) {
    let runtime: Arc<dyn Runtime> = Arc::new(runtime);
    let case = find(cancellation::LIST, name);
    if left_out(name) {
        return;
    }
    run(
        &*Arc::clone(&runtime),
        case,
        async || ProxiedEnv::new(runtime, harness).await,
        async |case, outcome| case.env.end(outcome).await,
    );
}
