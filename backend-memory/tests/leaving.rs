//! Those who leave a session, or leave a call alone, just when others come.

mod broken;
mod gate;
mod memory;

use std::{
    hint, mem,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc::channel,
    },
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use advisory_backend_memory::MemoryBackend;
use advisory_conformance_tests::Harness;
use advisory_core::{LockGuard, LockManager, Options, Result, spi::Request};
use async_trait::async_trait;
use broken::{Broken, Fault, Sound};
use futures::{FutureExt, executor::block_on, future::BoxFuture};
use gate::{ALL, Gate};

const BOUND: Duration = Duration::from_secs(10);
const ROUNDS: usize = 1_000;

/// Counts the sessions that go back to their pool, and those that do so with a lock.
#[derive(Clone, Debug, Default)]
struct Returns {
    all: Arc<AtomicUsize>,
    with_a_lock: Arc<AtomicUsize>,
    gate: Gate,
}

impl Returns {
    fn manager(&self, connections: usize, options: Options) -> LockManager {
        let space = block_on(Broken::by(self.clone()).space());
        LockManager::with_options(block_on(space.backend(connections)), options)
    }
}

#[async_trait]
impl Fault for Returns {
    async fn submit(&self, sound: &mut Sound, batch: &[Request]) -> Result<Vec<bool>> {
        self.gate.pass().await;
        sound.session.submit(batch).await
    }

    async fn recycle(&self, sound: Sound) {
        let id = sound.session.id();
        let held = sound.server.held();
        if held.iter().any(|held| Some(held.session) == id) {
            self.with_a_lock.fetch_add(1, SeqCst);
        }
        self.all.fetch_add(1, SeqCst);
        sound.session.recycle().await;
    }
}

fn poll_once<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Poll<T> {
    future.poll_unpin(&mut Context::from_waker(Waker::noop()))
}

fn until(done: impl Fn() -> bool) {
    let started = Instant::now();
    // Who sleeps is late for what this is about.
    for spins in 0_u64.. {
        if done() {
            return;
        }
        assert!(started.elapsed() < BOUND, "it takes too long");
        if spins < 10_000 {
            hint::spin_loop();
        } else {
            thread::yield_now();
        }
    }
}

/// A moment, another one each time.
fn dawdle() {
    for _ in 0..fastrand::u32(0..200) {
        hint::spin_loop();
    }
}

#[test]
fn a_release_of_many_that_is_given_up_frees_all() {
    let server = MemoryBackend::new();
    let locks = LockManager::new(server.clone());
    // The sessions live on.
    let sessions = [(); 3].map(|()| block_on(locks.session()).unwrap());
    let guards: Vec<_> = (1..)
        .zip(&sessions)
        .map(|(key, session)| block_on(session.lock(&locks.keyed(key))).unwrap())
        .collect();
    server.stall();
    let mut release = Box::pin(LockGuard::release_all(guards));
    assert!(poll_once(&mut release).is_pending());
    drop(release);
    server.resume();
    until(|| server.held().is_empty());
}

#[test]
fn a_call_that_was_forgotten_takes_no_lock_to_the_pool() {
    let returns = Returns::default();
    let locks = returns.manager(1, Options::new());
    let session = block_on(locks.session()).unwrap();
    let lock = locks.keyed(1);
    returns.gate.shut();
    let mut attempt = Box::pin(session.lock(&lock));
    assert!(poll_once(&mut attempt).is_pending());
    mem::forget(attempt);
    returns.gate.let_pass(ALL);
    block_on(session.release()).unwrap();
    assert_eq!(returns.all.load(SeqCst), 1);
    assert_eq!(returns.with_a_lock.load(SeqCst), 0);
}

/// Long after others have had their answers together, who would ask together.
#[test]
fn a_release_that_is_polled_once_frees() {
    let server = MemoryBackend::new();
    let locks = LockManager::new(server.clone());
    let session = block_on(locks.session()).unwrap();
    let keys = [1, 2, 3].map(|key: i64| locks.keyed(key));
    server.stall();
    let mut attempts = keys.each_ref().map(|lock| Box::pin(session.lock(lock)));
    for attempt in &mut attempts {
        assert!(poll_once(attempt).is_pending());
    }
    server.resume();
    let [first, _second, _third] = attempts.map(|attempt| block_on(attempt).unwrap());
    thread::sleep(Duration::from_millis(200));
    let key = first.key();
    let mut release = pin!(first.release());
    _ = poll_once(&mut release);
    until(|| server.holders(key).is_empty());
}

#[test]
fn a_guard_is_dropped_while_another_joins_the_queue() {
    let returns = Returns::default();
    let locks = returns.manager(4, Options::new().hand_over_within(Duration::ZERO));
    let (round, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let other = {
        let (lock, round, done) = (locks.keyed(1), Arc::clone(&round), Arc::clone(&done));
        thread::spawn(move || {
            for n in 1..=ROUNDS {
                until(|| round.load(SeqCst) >= n);
                dawdle();
                block_on(async { lock.lock().await.unwrap().release().await.unwrap() });
                done.store(n, SeqCst);
            }
        })
    };
    let lock = locks.keyed(1);
    for n in 1..=ROUNDS {
        let guard = block_on(lock.lock()).unwrap();
        round.store(n, SeqCst);
        dawdle();
        drop(guard);
        until(|| done.load(SeqCst) >= n);
        assert_eq!(returns.with_a_lock.load(SeqCst), 0, "in round {n}");
    }
    other.join().unwrap();
}

#[test]
fn a_guard_is_dropped_while_somebody_looks_after_it() {
    let returns = Returns::default();
    // A session that is dropped may keep its place for a moment.
    let locks = returns.manager(ROUNDS, Options::new());
    let (sender, watches) = channel::<BoxFuture<'static, ()>>();
    let (ready, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let done = Arc::new(AtomicUsize::new(0));
    let other = {
        let [ready, go, done] = [&ready, &go, &done].map(Arc::clone);
        thread::spawn(move || {
            for (mut watch, n) in watches.into_iter().zip(1..) {
                ready.store(n, SeqCst);
                until(|| go.load(SeqCst) >= n);
                dawdle();
                _ = poll_once(&mut watch);
                drop(watch);
                done.store(n, SeqCst);
            }
        })
    };
    let lock = locks.keyed(1);
    for n in 1..=ROUNDS {
        let guard = block_on(lock.lock()).unwrap();
        sender.send(guard.lost().map(drop).boxed()).unwrap();
        until(|| ready.load(SeqCst) >= n);
        go.store(n, SeqCst);
        dawdle();
        drop(guard);
        until(|| done.load(SeqCst) >= n);
        assert_eq!(returns.with_a_lock.load(SeqCst), 0, "in round {n}");
    }
    drop(sender);
    other.join().unwrap();
}
