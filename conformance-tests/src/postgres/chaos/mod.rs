//! Workers that are processes, faults that strike them at random, and a history of it all.
//!
//! - [`worker`] is what a worker's process runs: tasks, each of which is a [`visitor`] of sections.
//! - [`process`] is that process, seen from here.
//! - [`post`] has the [faults](fault) strike one worker, and [`arena`] has them strike the server.
//! - [`journal`] is what the workers say, by the [`clock`] that they share.
//! - [`checker`] looks for what must not be in it, and [`report`] says what is.

mod arena;
mod checker;
mod clock;
mod fault;
mod journal;
mod post;
mod process;
mod report;
mod section;
mod visitor;
mod worker;

use std::{
    thread,
    time::{Duration, Instant},
};

use advisory_core::{Lock, LockManager};
use fastrand::Rng;

pub use self::worker::worker;
use self::{
    arena::Arena,
    checker::{Bounds, check},
    journal::Outcome,
    post::Post,
    report::Report,
};
use super::{
    Database, Postgres, driver::all_of, left_out::sessions_end, observer::PostgresObserver,
};
use crate::{Observer as _, Runtime, storm::number, sync::pause};

/// How many workers there are at a time, and for how many keys.
const WORKERS: usize = 4;
const KEYS: u8 = 4;

/// How long it lasts, unless `ADVISORY_CHAOS_SECONDS` says otherwise.
const SECONDS: u64 = 15;

/// What the workers ask for: the default, and less than that.
const LOSS_SEEN_WITHIN: Duration = Duration::from_secs(1);
const SILENCE_SEEN_WITHIN: Duration = Duration::from_secs(2);

/// What a busy machine adds.
const MARGIN: Duration = Duration::from_secs(1);

const BOUNDS: Bounds = Bounds {
    closed: LOSS_SEEN_WITHIN.saturating_add(MARGIN),
    silent: SILENCE_SEEN_WITHIN.saturating_add(MARGIN),
};

/// How soon nothing may be left of it all.
const LEFT: Duration = Duration::from_secs(2);

/// Proves that sections exclude each other, and that a section is stopped when its lock is lost.
///
/// Workers, each a process with several tasks, enter sections of few keys in every way there is.
/// Meanwhile sessions are terminated, connections cut, delayed and silenced, workers stopped and
/// killed, and the server is restarted or crashes. From what the workers say, by one clock, it is
/// checked that
///
/// - sections that were held to the end never overlapped, and others no longer than the bound for
///   the kind of loss,
/// - the fencing tokens of a key grow from holder to holder,
/// - every acquisition came to an end,
/// - nothing is left: no lock, no session, no key that is not free.
///
/// `worker` names the test that calls [`worker()`]. `ADVISORY_CHAOS_SECONDS` says how long it
/// lasts. `ADVISORY_CHAOS_SEED` repeats the choices of a run: which faults strike each worker, in
/// which order and for how long, and what each task does. It does not repeat how processes, network
/// and server interleave, and so not what comes of it.
///
/// # Panics
///
/// If it is otherwise.
pub fn chaos(harness: &Postgres, runtime: &impl Runtime, worker: &str) {
    let seed = number("ADVISORY_CHAOS_SEED").unwrap_or_else(|| fastrand::u64(..));
    let seconds = number("ADVISORY_CHAOS_SECONDS").unwrap_or(SECONDS);
    // Seen if the test fails, or is asked to show what it says.
    println!("ADVISORY_CHAOS_SEED={seed} ADVISORY_CHAOS_SECONDS={seconds}");
    let mut rng = Rng::with_seed(seed);
    let arena = Arena::open(Duration::from_secs(seconds));
    thread::scope(|scope| {
        for number in 0..WORKERS {
            let (arena, rng) = (&arena, rng.fork());
            scope.spawn(move || Post::new(arena, worker, number, rng).run());
        }
        scope.spawn(|| arena.strike_server(rng.fork()));
    });
    let (history, strikes) = arena.history();
    let findings = check(&history, BOUNDS);
    let report = Report {
        history: &history,
        strikes: &strikes,
        findings: &findings,
    };
    println!("{report}");
    assert!(findings.violations.is_empty(), "see above");
    let stopped = report.outcomes().get(&Outcome::Stopped).copied();
    assert!(
        stopped > Some(0),
        "nobody has lost a lock, so nothing is proved"
    );
    runtime.block_on(Box::pin(assert_nothing_is_left(harness, &arena.database)));
}

async fn assert_nothing_is_left(harness: &Postgres, database: &Database) {
    let observer = PostgresObserver::new(database.client().await);
    let ended = Instant::now();
    loop {
        let asked = ended.elapsed();
        let (held, sessions) = (observer.held().await, observer.sessions().await);
        if held.is_empty() && (sessions.is_empty() || !sessions_end()) {
            break;
        }
        assert!(asked <= LEFT, "still there: {held:#?}, {sessions:?}");
        pause(Duration::from_millis(10)).await;
    }
    let fresh = harness.driver().backend(database.url(), 1, all_of(1)).await;
    let fresh = LockManager::new(fresh);
    for key in 0..KEYS {
        let guard = named(&fresh, key).try_lock().await.expect("it is well");
        let guard = guard.unwrap_or_else(|| panic!("key {key} is not free"));
        guard.release().await.expect("it was held");
    }
}

fn named(locks: &LockManager, key: u8) -> Lock {
    locks.named(format!("chaos:{key}"))
}
