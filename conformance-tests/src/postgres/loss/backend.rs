use super::{CLOSED_WITHIN, LossEnv, NAME, running::Running};
use crate::postgres::Server;

/// By an administrator, or by whatever else ends a single process of the server.
pub(super) async fn killed_stops_a_section(env: &LossEnv) {
    let database = Server::shared().database().await;
    let lock = env.manager(database.url()).await.named(NAME);
    let section = Running::start(env, lock.clone()).await;
    let token = section.token();
    let killed = "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks
        WHERE locktype = 'advisory' AND database =
          (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(database.client().await.value(killed).await, "t");
    section.stopped_within(CLOSED_WITHIN).await;

    let next = lock.with_guard(async |guard| guard.fencing_token().await);
    assert!(next.await.unwrap().unwrap() > token);
    database.remove().await;
}
