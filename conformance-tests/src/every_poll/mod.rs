//! Futures that are dropped after their first poll, after their second, and so on to their end, so
//! at every point where they wait for anything, on any backend.

use std::time::{Duration, Instant};

use advisory_core::LockManager;
use futures::future::BoxFuture;

use crate::{
    Env,
    interrupted::{Interruption, interrupted},
    list::list,
    sync::{DEADLINE, pause},
};

list! {
    ($)
    /// Generates a test for each kind of future that is dropped at every poll:
    /// `every_poll_suite!(harness, runtime)`. As [`suite!`](crate::suite) otherwise.
    every_poll_suite calls run_every_poll_case with Env;

    acquiring {
        of_a_lock
        of_a_try
        of_a_timeout
        of_a_wait
        of_a_session
        of_a_look_at_the_holders
    }
    holding {
        of_a_section
        of_a_release
        of_a_nested_section
        of_a_nested_wait
        of_a_lock_on_a_session
        of_a_close
    }
}

/// How soon nothing may be left: a slice of a wait, and what a busy machine adds.
const BOUND: Duration = Duration::from_secs(2);

/// More polls than any of the futures takes.
const POLLS: usize = 200;

/// Makes a future and drops it, at another poll each time, until one comes to its end.
async fn at_every_poll<'a, T>(
    make: impl Fn() -> BoxFuture<'a, T>,
    check: impl Fn() -> BoxFuture<'a, ()>,
) -> T {
    for polls in 1..POLLS {
        for interruption in [Interruption::After(polls), Interruption::Woken(polls)] {
            if let Some(output) = interrupted(make(), interruption).await {
                check().await;
                return output;
            }
            check().await;
        }
    }
    panic!("it does not end within {POLLS} polls");
}

/// Fails unless nothing is held, and a manager with a pool of one can use it.
async fn assert_nothing_is_left(env: &Env, locks: &LockManager) {
    until_empty(env).await;
    let lock = locks.named("fresh");
    let guard = lock.lock_timeout(DEADLINE).await.unwrap();
    env.holder(lock.key()).await;
    guard.release().await.unwrap();
    assert_eq!(env.held().await, []);
}

async fn until_empty(env: &Env) {
    let started = Instant::now();
    loop {
        let asked = started.elapsed();
        let held = env.held().await;
        if held.is_empty() {
            return;
        }
        assert!(asked <= BOUND, "still held: {held:?}");
        pause(Duration::from_millis(2)).await;
    }
}
