//! What a guard knows of its loss while nothing is asked.

use std::time::{Duration, Instant};

use advisory_backend_tokio_postgres::TokioPostgresBackend;
use advisory_conformance_tests::postgres::{Server, options};
use advisory_core::{Error, LockManager};

#[tokio::test]
async fn turns_true_by_itself() {
    let database = Server::shared().database().await;
    let backend = TokioPostgresBackend::connect(database.url()).await;
    let locks = LockManager::new(backend.unwrap().with_options(options()));
    let guard = locks.named("imports:run").lock().await.unwrap();
    assert!(!guard.is_lost());

    let holder = locks.named("imports:run").holders().await.unwrap()[0].session;
    let killed = format!("SELECT pg_terminate_backend({holder}, 10000)");
    assert_eq!(database.client().await.value(&killed).await, "t");
    let started = Instant::now();
    while !guard.is_lost() {
        assert!(started.elapsed() < Duration::from_secs(2), "not noticed");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!("noticed after {:?}", started.elapsed());
    assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
    database.remove().await;
}
