//! What a guard knows of its loss while nothing is asked.

use std::time::Duration;

use advisory_backend_sqlx::SqlxBackend;
use advisory_conformance_tests::postgres::{Database, Server, options};
use advisory_core::{Error, LockGuard, LockManager};

#[tokio::test]
async fn turns_true_with_the_next_statement() {
    let (database, guard) = whose_session_has_ended().await;
    guard.fencing_token().await.unwrap_err();
    assert!(guard.is_lost());
    database.remove().await;
}

#[tokio::test]
async fn turns_true_with_a_probe() {
    let (database, guard) = whose_session_has_ended().await;
    // Whoever awaits the loss has the session probed.
    assert!(matches!(guard.lost().await, Error::Lost { .. }));
    assert!(guard.is_lost());
    database.remove().await;
}

/// A guard that has not noticed that its lock is gone, though there was time.
async fn whose_session_has_ended() -> (Database, LockGuard) {
    let database = Server::shared().database().await;
    let backend = SqlxBackend::connect(database.url()).await.unwrap();
    let locks = LockManager::new(backend.with_options(options()));
    let guard = locks.named("imports:run").lock().await.unwrap();
    let holder = locks.named("imports:run").holders().await.unwrap()[0].session;
    let killed = format!("SELECT pg_terminate_backend({holder}, 10000)");
    assert_eq!(database.client().await.value(&killed).await, "t");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!guard.is_lost(), "the docs say otherwise");
    (database, guard)
}
