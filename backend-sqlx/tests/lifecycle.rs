//! How connections come out of a pool, go back, and end.
//!
//! All of sqlx's runtimes are built in here. Built for tokio alone, it would panic where a
//! connection is dropped or recycled outside of tokio without having been told its runtime.

mod common;

use std::{future::poll_fn, net::TcpListener, pin::pin, task::Poll, thread, time::Duration};

use advisory_backend_sqlx::{SqlxBackend, SqlxConnection, SqlxPool};
use advisory_core::{
    Error, LockBackend,
    postgres::{Connection, Pool, Value},
};
use common::{
    AsyncStd, Runtime, Smol, checkout, eventually, is_busy, is_gone, lock, options, pid, pool,
    runtime, url,
};
use futures::poll;
use sqlx::{PgPool, postgres::PgPoolOptions};

/// A pool that keeps one connection at the least: sqlx then spawns at every drop.
fn sustained_pool() -> PgPool {
    PgPoolOptions::new()
        .min_connections(1)
        .max_connections(1)
        .acquire_timeout(Duration::from_secs(20))
        .connect_lazy_with(options())
}

/// Checks out a connection that holds a lock.
async fn holder(pool: &PgPool, key: i64) -> (SqlxConnection, i32) {
    let mut connection = checkout(pool).await;
    let pid = pid(&mut connection).await;
    lock(&mut connection, key).await;
    (connection, pid)
}

fn dropped_outside(runtime: &impl Runtime, pool: fn() -> PgPool, key: i64) {
    let pool = runtime.block_on(async { pool() });
    let (connection, holder) = runtime.block_on(holder(&pool, key));
    thread::spawn(|| drop(connection)).join().unwrap();

    eventually("gone", || is_gone(holder));
    // The pool is at its full size, and the lock is free.
    let (connection, _) = runtime.block_on(self::holder(&pool, key));
    runtime.block_on(connection.recycle());
}

#[test]
fn dropped_outside_tokio() {
    dropped_outside(&runtime(), || pool(1), 6601);
}

#[test]
fn dropped_outside_tokio_with_min_connections() {
    dropped_outside(&runtime(), sustained_pool, 6602);
}

#[test]
fn dropped_outside_smol() {
    dropped_outside(&Smol, || pool(1), 6603);
}

#[test]
fn dropped_outside_async_std() {
    dropped_outside(&AsyncStd, || pool(1), 6604);
}

#[test]
fn dropped_after_its_runtime() {
    let runtime = runtime();
    let pool = runtime.block_on(async { sustained_pool() });
    let (connection, holder) = runtime.block_on(holder(&pool, 6605));
    drop(runtime);
    drop(connection);
    eventually("gone", || is_gone(holder));
}

/// Drops a future that owns the connection, in the middle of a statement.
fn dropped_midway(runtime: &impl Runtime, key: i64) {
    let pool = runtime.block_on(async { pool(1) });
    let (mut connection, holder) = runtime.block_on(holder(&pool, key));
    let mut section = Box::pin(async move {
        connection.query("SELECT pg_sleep(2)", &[]).await.unwrap();
    });
    eventually("busy", || {
        assert!(runtime.block_on(async { poll!(&mut section) }).is_pending());
        is_busy(holder)
    });
    thread::spawn(|| drop(section)).join().unwrap();

    // Another connection, at once: the server may take until the end of the statement to notice.
    let mut next = runtime.block_on(checkout(&pool));
    assert_ne!(runtime.block_on(pid(&mut next)), holder);
    eventually("gone", || is_gone(holder));
    runtime.block_on(async { lock(&mut next, key).await });
}

#[test]
fn dropped_midway_on_tokio() {
    dropped_midway(&runtime(), 6606);
}

#[test]
fn dropped_midway_on_smol() {
    dropped_midway(&Smol, 6607);
}

#[test]
fn dropped_midway_on_async_std() {
    dropped_midway(&AsyncStd, 6608);
}

fn recycled(runtime: &impl Runtime, recycle: impl FnOnce(SqlxConnection)) {
    let pool = runtime.block_on(async { sustained_pool() });
    let mut connection = runtime.block_on(checkout(&pool));
    let before = runtime.block_on(pid(&mut connection));
    recycle(connection);
    let mut connection = runtime.block_on(checkout(&pool));
    assert_eq!(runtime.block_on(pid(&mut connection)), before);
}

#[test]
fn recycled_on_tokio() {
    let runtime = runtime();
    recycled(&runtime, |connection| {
        runtime.block_on(connection.recycle());
    });
}

#[test]
fn recycled_outside_tokio() {
    recycled(&runtime(), |connection| {
        smol::block_on(connection.recycle());
    });
}

#[test]
fn recycled_on_smol() {
    recycled(&Smol, |connection| smol::block_on(connection.recycle()));
}

#[test]
fn recycled_on_async_std() {
    recycled(&AsyncStd, |connection| {
        async_std::task::block_on(connection.recycle());
    });
}

#[tokio::test]
async fn a_checkout_that_is_dropped_leaves_the_pool_whole() {
    let pool = pool(1);
    for wakes in 0..20 {
        let mut attempt = pin!(checkout(&pool));
        let mut left = wakes;
        poll_fn(|context| match left {
            0 => Poll::Ready(()),
            _ => {
                left -= 1;
                attempt.as_mut().poll(context).map(drop)
            }
        })
        .await;
    }
    checkout(&pool).await.recycle().await;
}

#[tokio::test]
async fn a_borrowed_pool_keeps_its_limit_and_stays_open() {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_secs(2))
        .connect_lazy_with(options());
    let taken = pool.acquire().await.unwrap();
    let driver = SqlxPool::from_pool(pool.clone());
    let error = driver.checkout().await.unwrap_err();
    assert!(matches!(error, Error::PoolExhausted { .. }), "{error:?}");
    drop(taken);

    driver.close().await;
    assert!(!pool.is_closed());
    pool.close().await;
    let error = driver.checkout().await.unwrap_err();
    assert!(matches!(error, Error::Closed), "{error:?}");
}

#[tokio::test]
async fn an_owned_pool_is_closed_with_its_backend() {
    let driver = SqlxPool::connect(&url()).await.unwrap();
    let mut connection = driver.checkout().await.unwrap();
    let idle = pid(&mut connection).await;
    connection.recycle().await;
    driver.close().await;
    eventually("gone", || is_gone(idle));
    let error = driver.checkout().await.unwrap_err();
    assert!(matches!(error, Error::Closed), "{error:?}");
}

#[test]
fn an_owned_pool_dropped_outside_its_runtime_closes_its_connections() {
    let runtime = runtime();
    let driver = runtime.block_on(SqlxPool::connect(&url())).unwrap();
    let mut connection = runtime.block_on(driver.checkout()).unwrap();
    let idle = runtime.block_on(pid(&mut connection));
    runtime.block_on(connection.recycle());
    drop(driver);
    eventually("gone", || is_gone(idle));
}

#[tokio::test]
async fn connections_are_called_advisory_unless_the_user_names_them() {
    let name = async |driver: SqlxPool| {
        let sql = "SELECT pg_catalog.current_setting('application_name')";
        let mut connection = driver.checkout().await.unwrap();
        connection
            .query(sql, &[])
            .await
            .unwrap()
            .remove(0)
            .remove(0)
    };
    let unnamed = SqlxPool::connect(&url()).await.unwrap();
    assert_eq!(name(unnamed).await, Value::Text("advisory".to_owned()));
    let named = options().application_name("billing");
    let named = SqlxPool::connect_pool(named, PgPoolOptions::new()).await;
    let named = named.unwrap();
    assert_eq!(name(named).await, Value::Text("billing".to_owned()));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_reported_at_once() {
    let refused = "postgres://postgres:swordfish@127.0.0.1:1/postgres";
    for url in [refused, "postgres://user:swordfish@host:port/", "nonsense"] {
        let error = SqlxBackend::connect(url).await.unwrap_err();
        assert!(matches!(error, Error::Backend(_)), "{error:?}");
        assert!(!format!("{error:?}").contains("swordfish"), "{error:?}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up_on() {
    // Its backlog takes the connection, and nobody ever looks at it.
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = silent.local_addr().unwrap().port();
    let pool = PgPoolOptions::new().acquire_timeout(Duration::from_millis(50));
    let attempt = SqlxBackend::connect_pool(options().port(port), pool);
    let error = attempt.await.unwrap_err();
    assert!(matches!(error, Error::PoolExhausted { .. }), "{error:?}");
}

#[tokio::test]
async fn debug_shows_no_password() {
    let options = options().password("swordfish");
    let backend = SqlxBackend::connect_with(options).await.unwrap();
    assert!(!format!("{backend:?}").contains("swordfish"));
    backend.close().await.unwrap();
}
