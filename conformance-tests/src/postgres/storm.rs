use std::sync::Arc;

use advisory_core::LockBackend;
use async_trait::async_trait;

use super::{
    Postgres, Proxy, RawClient, Server,
    driver::{PostgresSpace, all_of},
};
use crate::{
    Env, Observer, Runtime, Space,
    storm::{Strike, rage},
};

/// [`storm`](crate::storm::storm) on a server of its own, through a proxy that cuts connections;
/// and the server's log has nothing to say about the library.
///
/// # Panics
///
/// If anything is left, or the server has complained.
pub fn storm(harness: Postgres, runtime: impl Runtime) {
    let runtime: Arc<dyn Runtime> = Arc::new(runtime);
    Arc::clone(&runtime).block_on(Box::pin(async move {
        // A tenth of the default, and with it the slices: that much faster is the storm.
        let server = Server::start(&[("deadlock_timeout", "100ms")]);
        let database = Arc::new(server.database().await);
        let proxy = Arc::new(Proxy::to(database.url()).await);
        let space = ProxiedSpace {
            url: proxy.url().to_owned(),
            space: harness.space_in(Arc::clone(&database)).await,
            harness,
        };
        let strike = KillOrCut {
            proxy: Arc::clone(&proxy),
            client: database.client().await,
        };
        let env = Env::new(runtime, Box::new(space));
        rage(&env, &strike).await;
        assert_eq!(proxy.cancel_requests(), 0);
        database.assert_log_is_clean();
    }));
}

#[derive(Debug)]
struct ProxiedSpace {
    url: String,
    space: PostgresSpace,
    harness: Postgres,
}

#[async_trait]
impl Space for ProxiedSpace {
    async fn backend(&self, connections: usize) -> Box<dyn LockBackend> {
        let options = all_of(connections);
        let driver = self.harness.driver();
        driver.backend(&self.url, connections, options).await
    }

    fn observer(&self) -> &dyn Observer {
        self.space.observer()
    }

    async fn remove(&self) {
        self.space.remove().await;
    }
}

#[derive(Debug)]
struct KillOrCut {
    proxy: Arc<Proxy>,
    client: RawClient,
}

#[async_trait]
impl Strike for KillOrCut {
    async fn strike(&self, choice: u64) {
        if choice.is_multiple_of(2) {
            self.proxy.cut_one(choice / 2);
            return;
        }
        let sessions = "FROM pg_stat_activity WHERE datname = current_database()
             AND backend_type = 'client backend' AND pid <> pg_backend_pid()
             AND application_name <> 'advisory-observer'";
        self.client
            .run(&format!(
                "SELECT pg_terminate_backend(pid) FROM (SELECT pid {sessions} ORDER BY pid
                 LIMIT 1 OFFSET {} % greatest(1, (SELECT count(*) {sessions}))) AS chosen",
                choice % 1000,
            ))
            .await;
    }
}
