//! Pools that the backend opens itself.

use std::{error::Error as _, time::Duration};

use advisory_backend_tokio_postgres::TokioPostgresBackend;
use advisory_conformance_tests::postgres::{Server, left_out, options};
use advisory_core::{Error, LockBackend, LockManager};
use deadpool_postgres::PoolConfig;
use tokio_postgres::{Config, NoTls};

/// The names of all connections but the observer's own.
const APPLICATIONS: &str = "SELECT string_agg(DISTINCT application_name, ' ' ORDER BY application_name) \
     FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";

fn config(url: &str) -> Config {
    url.parse().expect("a URL of the fixture")
}

#[tokio::test]
async fn connections_are_named_unless_the_user_did() {
    if left_out("owned_pool::connections_are_named_unless_the_user_did") {
        return;
    }
    let server = Server::start(&[]);
    let mut config = config(&server.url());
    config.application_name("mine");
    let _named = TokioPostgresBackend::connect_with(config, NoTls)
        .await
        .unwrap();
    let _unnamed = TokioPostgresBackend::connect(&server.url()).await.unwrap();
    let applications = server.client().await.value(APPLICATIONS).await;
    assert_eq!(applications, "advisory mine");
}

#[tokio::test]
async fn a_closed_backend_opens_nothing_and_closes_its_pool() {
    let server = Server::start(&[]);
    let mut config = config(&server.url());
    config.application_name("closing");
    let backend = TokioPostgresBackend::connect_with(config, NoTls)
        .await
        .unwrap();
    let clone = backend.clone();
    backend.close().await.unwrap();
    backend.close().await.unwrap();
    assert!(matches!(clone.open().await, Err(Error::Closed)));

    let observer = server.client().await;
    let left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'closing'";
    let closed = async { while observer.value(left).await != "0" {} };
    let closed = tokio::time::timeout(Duration::from_secs(10), closed).await;
    closed.expect("the connections are closed");
}

#[tokio::test]
async fn the_size_and_the_limit_of_the_pool_can_be_set() {
    let mut pool = PoolConfig::new(1);
    pool.timeouts.wait = Some(Duration::from_millis(50));
    let config = config(&Server::shared().url());
    let backend = TokioPostgresBackend::connect_pool(config, NoTls, pool);
    let locks = LockManager::new(backend.await.unwrap().with_options(options()));

    let guard = locks.named("owned-pool:first").lock().await.unwrap();
    let second = locks.named("owned-pool:second").try_lock().await;
    assert!(matches!(second, Err(Error::PoolExhausted { .. })));

    guard.release().await.unwrap();
    assert!(
        locks
            .named("owned-pool:second")
            .try_lock()
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn a_url_that_asks_for_tls_is_told_where_to_go() {
    let url = "postgres://app:sesame@localhost/app?sslmode=require";
    let error = TokioPostgresBackend::connect(url).await.unwrap_err();
    let cause = error.source().expect("a cause").to_string();
    assert!(cause.contains("connect_with"), "{cause}");
    assert!(!format!("{error:?}").contains("sesame"));
}

#[tokio::test]
async fn what_cannot_be_reached_is_reported_at_once() {
    let error = TokioPostgresBackend::connect("postgres://app:sesame@127.0.0.1:1/app").await;
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Backend(_)));
    assert!(!format!("{error:?} {error}").contains("sesame"));
}

#[tokio::test]
async fn no_password_is_shown() {
    let mut config = config(&Server::shared().url());
    config.password("sesame");
    let backend = TokioPostgresBackend::connect_with(config, NoTls)
        .await
        .unwrap();
    assert!(!format!("{backend:?}").contains("sesame"));
}
