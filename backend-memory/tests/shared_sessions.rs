//! Owners that share one session, where they meet, give up or go.

mod broken;
mod gate;
mod memory;

use std::{
    hint,
    sync::mpsc::channel,
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use advisory_backend_memory::MemoryBackend;
use advisory_conformance_tests::Harness;
use advisory_core::{
    Error, LockBackend, LockGuard, LockManager, LockSession, Options, Result, Sessions,
    spi::Request,
};
use async_trait::async_trait;
use broken::{Broken, Fault, Sound};
use futures::{
    FutureExt,
    executor::block_on,
    future::{Either, join_all, select},
};
use futures_timer::Delay;
use gate::{ALL, Gate};

const BOUND: Duration = Duration::from_secs(10);

fn shared() -> Options {
    Options::new().sessions(Sessions::Shared)
}

fn poll_once<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Poll<T> {
    future.poll_unpin(&mut Context::from_waker(Waker::noop()))
}

#[async_trait]
impl Fault for Gate {
    async fn submit(&self, sound: &mut Sound, batch: &[Request]) -> Result<Vec<bool>> {
        self.pass().await;
        sound.session.submit(batch).await
    }
}

/// The attendant sees to the unlock of the guard at the same time.
#[test]
fn a_manager_is_closed_behind_a_dropped_guard() {
    let gate = Gate::default();
    let space = block_on(Broken::by(gate.clone()).space());
    let options = shared().answer_within(Duration::from_secs(2));
    let locks = LockManager::with_options(block_on(space.backend(3)), options);
    let guard = block_on(locks.keyed(1).lock()).unwrap();
    gate.shut();
    drop(guard);
    let closing = thread::spawn(move || {
        let started = Instant::now();
        block_on(locks.close()).unwrap();
        started.elapsed()
    });
    // An answer that takes a while.
    thread::sleep(Duration::from_millis(20));
    gate.let_pass(ALL);
    let took = closing.join().unwrap();
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// Those who gave up a wait are in nobody's way, though they ask for nothing else.
#[test]
fn who_gives_up_makes_way() {
    let server = MemoryBackend::new();
    let ours = LockManager::with_options(server.clone(), shared());
    let far = LockManager::new(server).keyed(1);
    let lock = ours.keyed(1);
    for is_cancelled in [false, true] {
        let held = block_on(far.lock()).unwrap();
        let session = block_on(ours.session()).unwrap();
        let _other = block_on(session.lock(&ours.keyed(2))).unwrap();
        let waited = Duration::from_millis(200);
        if is_cancelled {
            let wait = Box::pin(session.lock(&lock));
            match block_on(select(wait, Delay::new(waited))) {
                Either::Left((early, _)) => panic!("it is held elsewhere: {early:?}"),
                Either::Right(((), wait)) => drop(wait),
            }
        } else {
            block_on(session.lock_timeout(&lock, waited)).unwrap_err();
        }
        block_on(held.release()).unwrap();
        let next = block_on(lock.lock_timeout(BOUND)).expect("nobody is after it");
        block_on(next.release()).unwrap();
    }
}

#[test]
fn who_opens_the_session_and_is_left_alone_keeps_nobody() {
    let server = MemoryBackend::new();
    let locks = LockManager::with_options(server.clone(), shared());
    server.stall();
    let mut first = Box::pin(locks.session());
    assert!(poll_once(&mut first).is_pending());
    server.resume();
    let second = block_on(select(Box::pin(locks.session()), Delay::new(BOUND)));
    assert!(matches!(second, Either::Left((Ok(_), _))));
}

/// While the first of two locks is given back, another one enters the second again.
#[test]
fn what_is_entered_again_during_a_release_has_one_owner() {
    let server = MemoryBackend::new();
    let locks = LockManager::with_options(server.clone(), shared());
    let [one, two, other] = [(); 3].map(|()| block_on(locks.session()).unwrap());
    let [first, second, third] = [1, 2, 3].map(|key: i64| locks.keyed(key));
    let guards = [
        block_on(one.lock(&first)).unwrap(),
        block_on(two.lock(&second)).unwrap(),
    ];
    server.stall();
    let mut release = Box::pin(LockGuard::release_all(guards));
    assert!(poll_once(&mut release).is_pending());
    server.resume();
    let again = block_on(two.lock(&second)).unwrap();
    block_on(release).unwrap();
    // Whatever it does next.
    let _more = block_on(two.lock(&third)).unwrap();
    // A try would be told by the manager, and not by the session.
    let second = block_on(other.lock_timeout(&second, Duration::from_millis(300)));
    assert!(second.is_err(), "two owners: {again:?} and {second:?}");
    assert!(!again.is_lost());
}

#[test]
fn who_asks_during_a_release_is_the_one_owner() {
    const ROUNDS: usize = 300;

    let locks = LockManager::with_options(MemoryBackend::new(), shared());
    let [session, other] = [(); 2].map(|()| block_on(locks.session()).unwrap());
    let [lock, another] = [1, 2].map(|key: i64| locks.keyed(key));
    let (begin, begun) = channel::<()>();
    let (sender, guards) = channel();
    let asking = {
        let (session, lock) = (session.clone(), lock.clone());
        thread::spawn(move || {
            for () in begun {
                dawdle();
                sender.send(block_on(session.lock(&lock)).unwrap()).unwrap();
            }
        })
    };
    for round in 0..ROUNDS {
        let guard = block_on(session.lock(&lock)).unwrap();
        begin.send(()).unwrap();
        dawdle();
        block_on(guard.release()).unwrap();
        let again = guards.recv_timeout(BOUND).unwrap();
        let next = block_on(session.lock(&another)).unwrap();
        let second = block_on(other.lock_timeout(&lock, Duration::from_micros(300)));
        assert!(second.is_err(), "two owners in round {round}");
        block_on(LockGuard::release_all([again, next])).unwrap();
    }
    drop(begin);
    asking.join().unwrap();
}

/// What others hold has to be waited for on a connection besides.
#[test]
fn a_full_pool_costs_nothing_that_is_held() {
    let server = MemoryBackend::new();
    let options = shared()
        .answer_within(Duration::from_millis(300))
        .silence_seen_within(Duration::from_millis(600));
    let ours = LockManager::with_options(server.clone().with_max_sessions(1), options);
    let _far = block_on(LockManager::new(server).keyed(1).lock()).unwrap();
    let session = block_on(ours.session()).unwrap();
    let held = block_on(session.lock(&ours.keyed(2))).unwrap();
    let late = block_on(session.lock_timeout(&ours.keyed(1), Duration::from_secs(2)));
    assert!(late.is_err());
    assert!(!held.is_lost(), "{late:?}");
}

/// Two keys that others read cannot be had on the shared connection, and there is no other.
#[test]
fn a_full_pool_costs_no_reader_what_is_held() {
    let server = MemoryBackend::new();
    let options = shared()
        .answer_within(Duration::from_secs(1))
        .hand_over_within(Duration::ZERO);
    let locks = LockManager::with_options(server.with_max_sessions(1), options);
    let [reader, session] = [(); 2].map(|()| block_on(locks.session()).unwrap());
    let keys = [1, 2].map(|key: i64| locks.keyed(key).shared());
    let _read = block_on(reader.lock_all(&keys)).unwrap();
    let held = block_on(session.lock(&locks.keyed(3))).unwrap();
    let tried = block_on(session.try_lock_each(&keys));
    assert!(
        matches!(tried, Err(Error::PoolExhausted { .. })),
        "{tried:?}"
    );
    assert!(!held.is_lost());
}

/// A release, a request for the same lock, and one that fails travel together.
#[test]
fn what_fails_with_a_release_costs_others_nothing() {
    let server = MemoryBackend::new();
    let backend = server.clone().with_max_sessions(1);
    let backend = backend.with_checkout_timeout(Duration::from_millis(20));
    let options = shared().hand_over_within(Duration::ZERO);
    let locks = LockManager::with_options(backend, options);
    let [bystander, session] = [(); 2].map(|()| block_on(locks.session()).unwrap());
    let theirs = block_on(bystander.lock(&locks.keyed(1))).unwrap();
    let read = locks.keyed(2).shared();
    let _read = block_on(bystander.lock(&read)).unwrap();
    let (lock, other) = (locks.keyed(3), locks.keyed(4));
    let guard = block_on(session.lock(&lock)).unwrap();
    server.stall();
    let mut calls = [
        async { drop(session.lock(&other).await) }.boxed(),
        async { drop(guard.release().await) }.boxed(),
        async { drop(session.lock(&lock).await) }.boxed(),
        async { drop(session.try_lock(&read).await) }.boxed(),
    ];
    assert!(calls.iter_mut().all(|call| poll_once(call).is_pending()));
    server.resume();
    block_on(join_all(calls));
    assert!(!theirs.is_lost());
}

/// Opens a session in more time than the others wait for it.
#[derive(Clone, Debug)]
struct Slow;

#[async_trait]
impl Fault for Slow {
    async fn open(&self, server: &MemoryBackend) -> Result<Box<dyn LockSession>> {
        let session = server.open().await?;
        Delay::new(Duration::from_millis(1500)).await;
        Ok(session)
    }
}

#[test]
fn a_session_that_takes_long_to_open_is_had_by_all() {
    let space = block_on(Broken::by(Slow).space());
    let locks = LockManager::with_options(block_on(space.backend(1)), shared());
    let opening = [(); 4].map(|()| {
        let locks = locks.clone();
        thread::spawn(move || {
            let opened = block_on(select(locks.session().boxed(), Delay::new(BOUND)));
            matches!(opened, Either::Left((Ok(_), _)))
        })
    });
    for opening in opening {
        assert!(opening.join().unwrap(), "it was opened, and not had");
    }
}

/// A moment, another one each time.
fn dawdle() {
    for _ in 0..fastrand::u32(0..300) {
        hint::spin_loop();
    }
}
