//! A server that stops answering: everything ends in bounded time, and nothing stays held.

use std::{
    future::{Future, pending},
    time::{Duration, Instant},
};

use advisory_backend_memory::MemoryBackend;
use advisory_core::{Error, Lock, LockManager, Options, Result, Stage};
use futures::poll;

/// How long the server may leave a statement unanswered.
const ANSWER: Duration = Duration::from_millis(200);

/// Far from that, and from the second of grace that a timeout may have on top.
const BOUND: Duration = Duration::from_secs(10);

/// A server, a manager that is patient with it for a short time, and one of its locks.
fn set_up() -> (MemoryBackend, LockManager, Lock) {
    let server = MemoryBackend::new().with_checkout_timeout(ANSWER);
    let options = Options::new().answer_within(ANSWER);
    let locks = LockManager::with_options(server.clone(), options);
    let lock = locks.named("db:migrate");
    (server, locks, lock)
}

/// Awaits what must not take for ever, and cannot be over before the server has been given up on.
async fn bounded<T>(work: impl Future<Output = T>) -> T {
    let started = Instant::now();
    let output = tokio::time::timeout(BOUND, work).await;
    let output = output.expect("it should have ended by itself");
    assert!(started.elapsed() >= ANSWER, "the server did not stall");
    output
}

/// The server answers again, and another replica finds the lock free.
async fn assert_free(server: &MemoryBackend, lock: &Lock) {
    server.resume();
    assert_eq!(server.held(), []);
    let rival = LockManager::new(server.clone()).keyed(lock.key());
    let guard = rival.try_lock().await.unwrap().expect("it is free");
    guard.release().await.unwrap();
    // The manager is as good as before.
    lock.with(async || ()).await.unwrap();
}

fn assert_lost<T: std::fmt::Debug>(result: &Result<T>) {
    assert!(matches!(result, Err(Error::Lost { .. })), "{result:?}");
}

#[tokio::test]
async fn a_release_ends_and_frees_the_lock() {
    let (server, _, lock) = set_up();
    let guard = lock.lock().await.unwrap();
    server.stall();
    assert_lost(&bounded(guard.release()).await);
    assert_free(&server, &lock).await;
}

#[tokio::test]
async fn a_section_ends_with_its_release() {
    let (server, _, lock) = set_up();
    let ended = bounded(lock.with(async || server.stall())).await;
    assert_lost(&ended);
    assert_free(&server, &lock).await;
}

#[tokio::test]
async fn a_nested_acquisition_loses_what_the_session_held() {
    let (server, locks, lock) = set_up();
    let inner = locks.named("inner");
    let ended = lock.with(async || {
        server.stall();
        assert_lost(&bounded(inner.lock()).await);
        assert_lost(&lock.try_lock().await);
    });
    assert_lost(&ended.await);
    assert_free(&server, &lock).await;
}

#[tokio::test]
async fn a_timeout_bounds_the_opening_of_a_session() {
    let server = MemoryBackend::new();
    let lock = LockManager::new(server.clone()).named("db:migrate");
    server.stall();
    match bounded(lock.with_timeout(ANSWER, async || ())).await {
        Err(Error::Timeout { stage, .. }) => assert_eq!(stage, Stage::Connection),
        other => panic!("nobody answers: {other:?}"),
    }
    assert_free(&server, &lock).await;
}

#[tokio::test]
async fn a_timeout_bounds_a_wait_that_is_under_way() {
    let (server, _, lock) = set_up();
    let rival = LockManager::new(server.clone()).keyed(lock.key());
    let guard = rival.lock().await.unwrap();
    let mut waiting = Box::pin(lock.with_timeout(ANSWER, async || ()));
    assert!(poll!(&mut waiting).is_pending());
    server.stall();
    let late = bounded(waiting).await;
    assert!(matches!(late, Err(Error::Timeout { .. })), "{late:?}");
    server.resume();
    assert!(server.waiters(lock.key()).is_empty());
    guard.release().await.unwrap();
    assert_free(&server, &lock).await;
}

#[tokio::test]
async fn a_stall_that_is_short_goes_unnoticed() {
    let server = MemoryBackend::new();
    let lock = LockManager::new(server.clone()).named("db:migrate");
    let guard = lock.lock().await.unwrap();
    server.stall();
    let mut release = Box::pin(guard.release());
    assert!(poll!(&mut release).is_pending());
    server.resume();
    release.await.unwrap();
    assert_free(&server, &lock).await;
}

#[tokio::test]
async fn dropped_guards_free_their_locks() {
    let (server, locks, lock) = set_up();
    let session = locks.session().await.unwrap();
    let first = session.lock(&lock).await.unwrap();
    let second = session.lock(&locks.named("second")).await.unwrap();
    server.stall();
    drop(first);
    // The unlock is under way, and whoever comes next finds out that nobody answers.
    assert_lost(&bounded(second.release()).await);
    drop(session);
    assert_free(&server, &lock).await;
}

#[tokio::test]
async fn a_dropped_section_frees_its_lock() {
    let (server, _, lock) = set_up();
    let mut section = Box::pin(lock.with(async || pending::<()>().await));
    assert!(poll!(&mut section).is_pending());
    assert_eq!(server.held().len(), 1);
    server.stall();
    drop(section);
    assert_free(&server, &lock).await;
}

#[tokio::test]
async fn close_ends_when_those_that_it_waits_for_have() {
    let (server, locks, lock) = set_up();
    let guard = lock.lock().await.unwrap();
    let mut close = Box::pin(locks.close());
    assert!(poll!(&mut close).is_pending());
    server.stall();
    assert_lost(&bounded(guard.release()).await);
    tokio::time::timeout(BOUND, close).await.unwrap().unwrap();
    server.resume();
    assert_eq!(server.held(), []);
}

#[tokio::test]
async fn a_nested_wait_does_not_hide_that_the_session_is_lost() {
    let server = MemoryBackend::new();
    let options = Options::new()
        .answer_within(ANSWER)
        .silence_seen_within(ANSWER);
    let locks = LockManager::with_options(server.clone(), options);
    let (outer, inner) = (locks.named("outer"), locks.named("inner"));
    let rival = LockManager::new(server.clone()).keyed(inner.key());
    let guard = rival.lock().await.unwrap();
    let mut section = Box::pin(outer.with(async || inner.with(async || ()).await));
    assert!(poll!(&mut section).is_pending());
    server.stall();
    let ended = bounded(section).await;
    assert!(matches!(ended, Err(Error::Lost { .. })), "{ended:?}");
    server.resume();
    guard.release().await.unwrap();
    assert_free(&server, &outer).await;
}
