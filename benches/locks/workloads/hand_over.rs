//! How long a lock is nobody's on its way from one process to another.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::{FutureExt, future::join};
use tokio::time::sleep;

use crate::{
    bench::Bench,
    rivals::{Entry, HANDWRITTEN, PG_ADVISORY_LOCK, Place, Rival, SQLX, TOKIO_POSTGRES},
    stats::percentile,
    table::{NOTHING, Table, number},
};

/// Long enough for the other side to be waiting when it ends.
const SECTION: Duration = Duration::from_millis(3);

/// Who hands the lock to whom. A manager with a pool of its own stands for a process: the server
/// cannot tell the difference, and one clock measures both.
const PAIRS: &[(&Entry, &Entry)] = &[
    (&HANDWRITTEN, &HANDWRITTEN),
    (&TOKIO_POSTGRES, &TOKIO_POSTGRES),
    (&TOKIO_POSTGRES, &HANDWRITTEN),
    (&HANDWRITTEN, &TOKIO_POSTGRES),
    (&PG_ADVISORY_LOCK, &PG_ADVISORY_LOCK),
    (&SQLX, &SQLX),
];

struct Pair {
    giver: Arc<dyn Rival>,
    taker: Arc<dyn Rival>,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    /// When the giver's section ended, until somebody has the lock again.
    given: Option<Instant>,
    /// How long it took to be the taker's, in microseconds.
    took: Vec<f64>,
}

impl Log {
    fn taken(&mut self) {
        let given = self.given.take();
        let took = given.map(|given| given.elapsed().as_secs_f64() * 1e6);
        self.took.extend(took);
    }
}

pub(super) async fn run(bench: &Bench) {
    let place = Place {
        contended: true,
        ..bench.place("hand-over")
    };
    let mut pairs = Vec::new();
    for (giver, taker) in PAIRS {
        pairs.push(Arc::new(Pair {
            giver: giver.open(place.clone()).await,
            taker: taker.open(place.clone()).await,
            log: Mutex::default(),
        }));
    }
    // The first round opens connections and prepares statements. It does not count.
    for round in 0..=bench.rounds {
        for (key, pair) in pairs.iter().enumerate() {
            play(pair, key as i64, bench.time).await;
            if round == 0 {
                *pair.log() = Log::default();
            }
        }
    }
    let mut table = Table::new(["from", "to", "times", "p50 µs", "p99 µs"]);
    for ((giver, taker), pair) in PAIRS.iter().zip(&pairs) {
        let mut took = pair.log().took.clone();
        took.sort_by(f64::total_cmp);
        let percentile = |part| percentile(&took, part).map_or(NOTHING.to_owned(), number);
        table.row([
            giver.name.to_owned(),
            taker.name.to_owned(),
            took.len().to_string(),
            percentile(0.5),
            percentile(0.99),
        ]);
    }
    println!("{table}");
}

async fn play(pair: &Arc<Pair>, key: i64, time: Duration) {
    // Between two rounds it was nobody's.
    pair.log().given = None;
    let end = Instant::now() + time;
    // Two processes have no task in common.
    let give = tokio::spawn(give(Arc::clone(pair), key, end));
    let take = tokio::spawn(take(Arc::clone(pair), key, end));
    let (given, taken) = join(give, take).await;
    given.and(taken).expect("no panic");
}

async fn give(pair: Arc<Pair>, key: i64, end: Instant) {
    let section = || {
        async {
            pair.log().given = None;
            sleep(SECTION).await;
            pair.log().given = Some(Instant::now());
        }
        .boxed()
    };
    while Instant::now() < end {
        pair.giver.cycle(key, &section).await;
    }
}

async fn take(pair: Arc<Pair>, key: i64, end: Instant) {
    let section = || {
        async {
            pair.log().taken();
            sleep(SECTION).await;
        }
        .boxed()
    };
    while Instant::now() < end {
        pair.taker.cycle(key, &section).await;
    }
}

impl Pair {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
