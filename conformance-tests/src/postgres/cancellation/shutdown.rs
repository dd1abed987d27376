use std::{
    panic,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use advisory_core::{LockGuard, LockManager};
use futures::{executor::block_on, future::pending};
use tokio::runtime::{Builder, Runtime};

use super::{assert_nothing_is_left, until_disconnected, until_held};
use crate::{
    postgres::{ProxiedEnv, proxied::BOUND},
    sync::DEADLINE,
};

const NAME: &str = "imports:run";

/// What happens at the same time happens in another order each time.
const ROUNDS: usize = 5;

pub(super) async fn a_guard_is_dropped_later(env: &ProxiedEnv) {
    for end in ENDS {
        let dying = Dying::start(env);
        let guard = dying.run(dying.locks.named(NAME).lock()).unwrap();
        let key = guard.key();
        env.holder(key).await;
        let locks = dying.end(end);
        outside(move || drop(guard));
        env.until_free_within(BOUND, key).await;
        outside(move || drop(locks));
    }
    assert_all_is_well(env).await;
}

pub(super) async fn a_guard_is_dropped_meanwhile(env: &ProxiedEnv) {
    for _ in 0..ROUNDS {
        for end in ENDS {
            let dying = Dying::start(env);
            let guard = dying.run(dying.locks.named(NAME).lock()).unwrap();
            let key = guard.key();
            let ending = thread::spawn(move || dying.end(end));
            let dropping = thread::spawn(move || drop(guard));
            dropping.join().expect("no drop panics");
            drop(ending.join().expect("no end panics"));
            env.until_free_within(BOUND, key).await;
        }
    }
    assert_all_is_well(env).await;
}

pub(super) async fn one_guard_of_a_session_is_dropped_later(env: &ProxiedEnv) {
    for end in ENDS {
        let dying = Dying::start(env);
        let session = dying.run(dying.locks.session()).unwrap();
        let one = dying.run(session.lock(&dying.locks.named("one"))).unwrap();
        let two = dying.run(session.lock(&dying.locks.named("two"))).unwrap();
        let locks = dying.end(end);
        outside(move || {
            drop(one);
            drop(session);
            drop(two);
        });
        assert_all_is_well(env).await;
        drop(locks);
    }
}

/// It cannot come to a good end, but it has to come to one.
pub(super) async fn a_release_comes_too_late(env: &ProxiedEnv) {
    for end in ENDS {
        let dying = Dying::start(env);
        let guard = dying.run(dying.locks.named(NAME).lock()).unwrap();
        let key = guard.key();
        let locks = dying.end(end);
        let started = Instant::now();
        // Whether it is told that the connection has gone is the driver's affair.
        outside(move || drop(block_on(guard.release())));
        assert!(started.elapsed() < 2 * BOUND, "nobody ended it");
        env.until_free_within(BOUND, key).await;
        drop(locks);
    }
    assert_all_is_well(env).await;
}

/// The runtime drops the tasks that it still has.
pub(super) async fn tasks_are_dropped(env: &ProxiedEnv) {
    for end in ENDS {
        let dying = Dying::start(env);
        let section = dying.locks.named(NAME);
        let nested = dying.locks.named("nested");
        let waiter = dying.locks.named(NAME);
        let key = section.key();
        dying.runtime.spawn(async move {
            let section = section.with(async || nested.with(async || pending::<()>().await).await);
            section.await
        });
        until_held(env, dying.locks.named("nested").key()).await;
        let locks = dying.locks.clone();
        // On a session of its own, for it would queue up here otherwise.
        dying.runtime.spawn(async move {
            let session = locks.session().await?;
            session.lock(&waiter).await.map(drop)
        });
        env.until_waiters(key, 1).await;
        let locks = dying.end(end);
        env.until_waiters(key, 0).await;
        env.until_free_within(BOUND, key).await;
        drop(locks);
    }
    assert_all_is_well(env).await;
}

pub(super) async fn a_manager_is_dropped_later(env: &ProxiedEnv) {
    for end in ENDS {
        for owned in [false, true] {
            let dying = Dying::start_with(env, owned);
            let guard = dying.run_one_and_lock_another();
            let locks = dying.end(end);
            outside(move || drop(locks));
            outside(move || drop(guard));
            until_disconnected(BOUND, env).await;
        }
    }
    assert_all_is_well(env).await;
}

pub(super) async fn a_manager_is_dropped_meanwhile(env: &ProxiedEnv) {
    for _ in 0..ROUNDS {
        for end in ENDS {
            for owned in [false, true] {
                let dying = Dying::start_with(env, owned);
                let guard = dying.run_one_and_lock_another();
                let locks = dying.locks.clone();
                let ending = thread::spawn(move || drop(dying.end(end)));
                let dropping = thread::spawn(move || {
                    drop(locks);
                    drop(guard);
                });
                dropping.join().expect("no drop panics");
                ending.join().expect("no end panics");
                until_disconnected(BOUND, env).await;
            }
        }
    }
    assert_all_is_well(env).await;
}

/// A tokio runtime that will not live for long, and a manager whose connections are on it.
struct Dying {
    runtime: Runtime,
    locks: LockManager,
}

/// How a runtime ends.
#[derive(Clone, Copy)]
enum End {
    Dropped,
    InTheBackground,
}

const ENDS: [End; 2] = [End::Dropped, End::InTheBackground];

impl Dying {
    fn start(env: &ProxiedEnv) -> Self {
        Self::start_with(env, false)
    }

    /// The pool is the backend's own, or handed in.
    fn start_with(env: &ProxiedEnv, owned: bool) -> Self {
        LazyLock::force(&COUNTED);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name(THREAD)
            .enable_all()
            .build()
            .expect("tokio starts");
        let locks = run(&runtime, async {
            if owned {
                env.owned(2, DEADLINE).await
            } else {
                env.proxied(2).await
            }
        });
        Self { runtime, locks }
    }

    /// Leaves one connection with a lock on it, and one in the pool.
    fn run_one_and_lock_another(&self) -> LockGuard {
        let guard = self.run(self.locks.named(NAME).lock()).unwrap();
        let other = self.locks.named("other");
        self.run(other.with(async || ())).unwrap();
        guard
    }

    fn run<T: Send>(&self, future: impl Future<Output = T> + Send) -> T {
        run(&self.runtime, future)
    }

    fn end(self, end: End) -> LockManager {
        let runtime = self.runtime;
        outside(move || match end {
            End::Dropped => drop(runtime),
            End::InTheBackground => runtime.shutdown_background(),
        });
        self.locks
    }
}

/// From a thread of its own: no runtime may be run inside another.
fn run<T: Send>(runtime: &Runtime, future: impl Future<Output = T> + Send) -> T {
    thread::scope(|scope| {
        let running = scope.spawn(|| runtime.block_on(future));
        running.join().expect("it does not panic")
    })
}

fn outside(work: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().name(THREAD.to_owned()).spawn(work);
    let ended = thread.expect("there are threads").join();
    ended.expect("no drop panics");
}

async fn assert_all_is_well(env: &ProxiedEnv) {
    let locks = env.proxied_with(1, Duration::from_secs(10)).await;
    assert_nothing_is_left(env, &locks, 1).await;
    // A runtime keeps the panics of its tasks to itself.
    assert_eq!(PANICS.load(SeqCst), 0, "something has panicked");
}

/// The name of a dying runtime's threads, and of those that have to do with its end.
const THREAD: &str = "dying";

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts the panics on such threads from now on.
static COUNTED: LazyLock<()> = LazyLock::new(|| {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().name() == Some(THREAD) {
            PANICS.fetch_add(1, SeqCst);
        }
        report(info);
    }));
});
