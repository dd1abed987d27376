//! Thousands of acquisitions at once, most of which end badly.

use std::{
    env::var,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use advisory_core::{Error, Lock, LockManager, Result};
use async_trait::async_trait;
use fastrand::Rng;
use futures::{
    FutureExt,
    future::{BoxFuture, Either, select},
};

use crate::{
    Env, Harness, Runtime,
    interrupted::{Interruption, interrupted},
    sync::{DEADLINE, pause},
};

/// How many acquire at the same time, with how many pools of which size, for how many keys.
const TASKS: usize = 12;
const MANAGERS: usize = 2;
const CONNECTIONS: usize = 4;
const KEYS: u8 = 5;

/// How many acquisitions there are, unless `ADVISORY_STORM_ROUNDS` says otherwise.
const ROUNDS: usize = 300;

/// One acquisition in so many is struck from outside.
const PER_STRIKE: usize = 8;

/// How soon nothing may be left of it all.
const BOUND: Duration = Duration::from_secs(2);

/// What strikes an acquisition that nobody has cancelled.
#[async_trait]
pub trait Strike: fmt::Debug + Send + Sync + 'static {
    /// Ends a session or a connection, whichever `choice` falls on, if there is one.
    async fn strike(&self, choice: u64);
}

/// Acquires at random, with many tasks and few keys: nested or not, shared and exclusive, patient
/// or not. Most acquisitions are cancelled at a random instant, or lose their session. At the end
/// nothing may be left: no lock, no place in a pool that is missing, no key that is taken for held.
///
/// `ADVISORY_STORM_ROUNDS` says how many acquisitions there are, and `ADVISORY_STORM_SEED` repeats
/// the choices of a storm that has failed, though not its timing.
///
/// # Panics
///
/// If anything is left.
pub fn storm(harness: impl Harness, runtime: impl Runtime, strike: impl Strike) {
    let runtime: Arc<dyn Runtime> = Arc::new(runtime);
    Arc::clone(&runtime).block_on(Box::pin(async move {
        let env = Env::new(runtime, harness.space().await);
        rage(&env, &strike).await;
        env.remove().await;
    }));
}

/// A storm, up to the proof that nothing is left.
pub(crate) async fn rage(env: &Env, strike: &dyn Strike) {
    let seed = number("ADVISORY_STORM_SEED").unwrap_or_else(|| fastrand::u64(..));
    let rounds = number("ADVISORY_STORM_ROUNDS").map_or(ROUNDS, |rounds| rounds as usize);
    // Seen if the test fails, or is asked to show what it says.
    println!("ADVISORY_STORM_SEED={seed} ADVISORY_STORM_ROUNDS={rounds}");

    let mut managers = Vec::new();
    for _ in 0..MANAGERS {
        managers.push(env.manager_with_pool_of(CONNECTIONS).await);
    }
    let started = Instant::now();
    let tally = Arc::new(Tally::default());
    let mut rng = Rng::with_seed(seed);
    let tasks: Vec<_> = (0..TASKS)
        .map(|at| {
            let sailor = Sailor {
                locks: managers[at % MANAGERS].clone(),
                rng: rng.fork(),
                tally: Arc::clone(&tally),
            };
            env.spawn(sailor.sail(rounds))
        })
        .collect();
    let mut struck = 0;
    while tally.begun.load(Relaxed) < rounds {
        if tally.begun.load(Relaxed) / PER_STRIKE > struck {
            struck += 1;
            strike.strike(rng.u64(..)).await;
        }
        pause(Duration::from_micros(200)).await;
    }
    for task in tasks {
        task.await;
    }
    println!("{tally}, {struck} strikes, in {:?}", started.elapsed());
    assert_nothing_is_left(env, &managers).await;
}

async fn assert_nothing_is_left(env: &Env, managers: &[LockManager]) {
    let ended = Instant::now();
    loop {
        let asked = ended.elapsed();
        let held = env.held().await;
        if held.is_empty() {
            break;
        }
        assert!(asked <= BOUND, "still held: {held:#?}");
        pause(Duration::from_millis(5)).await;
    }
    // A fresh client finds every key free, and so does each of those that were in the storm: what
    // they keep of the locks they hold is up to date.
    let fresh = env.manager().await;
    for locks in managers.iter().chain([&fresh]) {
        for key in 0..KEYS {
            let guard = named(locks, key).try_lock().await.unwrap();
            let guard = guard.unwrap_or_else(|| panic!("key {key} is taken for held"));
            env.holder(guard.key()).await;
            guard.release().await.unwrap();
        }
    }
    // Every connection of the pools can be had, and answers.
    for locks in managers {
        let mut guards = Vec::new();
        for at in 0..CONNECTIONS {
            let lock = locks.named(format!("one of the pool:{at}"));
            let guard = lock.lock_timeout(DEADLINE).await;
            guards.push(guard.unwrap_or_else(|error| panic!("connection {at}: {error:?}")));
        }
        assert_eq!(env.held().await.len(), CONNECTIONS);
        for guard in guards {
            guard.release().await.unwrap();
        }
    }
    assert_eq!(env.held().await, []);
}

/// How the acquisitions ended.
#[derive(Debug, Default)]
struct Tally {
    begun: AtomicUsize,
    held: AtomicUsize,
    missed: AtomicUsize,
    cancelled: AtomicUsize,
    lost: AtomicUsize,
}

impl Tally {
    fn count(&self, outcome: Option<Result<()>>) {
        let counter = match outcome {
            None => &self.cancelled,
            Some(Ok(())) => &self.held,
            Some(Err(Error::Timeout { .. } | Error::Deadlock { .. })) => &self.missed,
            // A pool may be full of connections that are struck.
            Some(Err(Error::Lost { .. } | Error::Backend(_) | Error::PoolExhausted { .. })) => {
                &self.lost
            }
            Some(Err(other)) => panic!("nothing in a storm causes this: {other:?}"),
        };
        counter.fetch_add(1, Relaxed);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [held, missed, cancelled, lost] =
            [&self.held, &self.missed, &self.cancelled, &self.lost]
                .map(|counter| counter.load(Relaxed));
        write!(
            f,
            "{held} held to the end or tried in vain, {missed} late, {cancelled} cancelled, {lost} lost"
        )
    }
}

/// One of the tasks.
struct Sailor {
    locks: LockManager,
    rng: Rng,
    tally: Arc<Tally>,
}

impl Sailor {
    async fn sail(mut self, rounds: usize) {
        while self.tally.begun.fetch_add(1, Relaxed) < rounds {
            let acquisition = self.acquisition();
            let outcome = match self.rng.u8(0..10) {
                0..3 => interrupted(acquisition, Interruption::After(self.rng.usize(1..25))).await,
                3..5 => interrupted(acquisition, Interruption::Woken(self.rng.usize(1..25))).await,
                5..8 => {
                    // From a microsecond to 16 ms: each order of magnitude as often as the next.
                    let limit = Duration::from_micros(1 << self.rng.u32(0..15));
                    no_longer_than(limit, acquisition).await
                }
                _ => {
                    let outcome = no_longer_than(2 * DEADLINE, acquisition).await;
                    Some(outcome.expect("an acquisition hangs"))
                }
            };
            self.tally.count(outcome);
        }
    }

    /// What may or may not come to its end.
    fn acquisition(&mut self) -> BoxFuture<'static, Result<()>> {
        let (first, second) = (self.lock(), self.lock());
        let work = Duration::from_micros(self.rng.u64(0..3000));
        let patience = Duration::from_micros(self.rng.u64(0..30_000));
        match self.rng.u8(0..9) {
            0 => async move {
                let guard = first.lock().await?;
                pause(work).await;
                guard.release().await
            }
            .boxed(),
            1 => async move {
                let guard = first.lock_timeout(patience).await?;
                pause(work).await;
                drop(guard);
                Ok(())
            }
            .boxed(),
            2 => async move {
                match first.try_lock().await? {
                    Some(guard) => guard.release().await,
                    None => Ok(()),
                }
            }
            .boxed(),
            3 => async move { first.try_with(|| pause(work)).await.map(drop) }.boxed(),
            4 => async move { first.with(|| pause(work)).await }.boxed(),
            5 => async move {
                let section = async || second.with_timeout(patience, || pause(work)).await;
                first.with(section).await?
            }
            .boxed(),
            6 => async move {
                let section = async || {
                    // The inner wait is cancelled, and the outer section goes on.
                    let inner = second.with(|| pause(work)).boxed();
                    no_longer_than(patience, inner).await.unwrap_or(Ok(()))
                };
                first.with(section).await?
            }
            .boxed(),
            7 => {
                // It outlives the section that it was taken in.
                let section = async move || second.try_lock().await;
                async move {
                    let guard = first.with_timeout(patience, section).await??;
                    pause(work).await;
                    drop(guard);
                    Ok(())
                }
                .boxed()
            }
            _ => {
                let locks = self.locks.clone();
                async move {
                    let session = locks.session().await?;
                    let one = session.lock_timeout(&first, patience).await?;
                    let two = session.try_lock(&second).await?;
                    pause(work).await;
                    drop(one);
                    if let Some(two) = two {
                        two.release().await?;
                    }
                    session.release().await
                }
                .boxed()
            }
        }
    }

    fn lock(&mut self) -> Lock {
        let lock = named(&self.locks, self.rng.u8(0..KEYS));
        if self.rng.u8(0..3) == 0 {
            lock.shared()
        } else {
            lock
        }
    }
}

fn named(locks: &LockManager, key: u8) -> Lock {
    locks.named(format!("storm:{key}"))
}

/// `None` if it takes longer; then it is dropped.
async fn no_longer_than<T>(limit: Duration, work: BoxFuture<'_, T>) -> Option<T> {
    match select(work, Box::pin(pause(limit))).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(_) => None,
    }
}

pub(crate) fn number(name: &str) -> Option<u64> {
    let text = var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}
