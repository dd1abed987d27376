//! Who gets a lock that several processes want all the time, and how long the others wait.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use futures::FutureExt;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    bench::Bench,
    rivals::{Entry, HANDWRITTEN, PG_ADVISORY_LOCK, Place, Rival, SQLX, TOKIO_POSTGRES},
    stats::{percentile, spread},
    table::{NOTHING, Table, median, number},
};

const RIVALS: &[Entry] = &[HANDWRITTEN, TOKIO_POSTGRES, PG_ADVISORY_LOCK, SQLX];
const TASKS_OF_A_PROCESS: usize = 4;
/// A round has to be long enough for many turns.
const LONGER: u32 = 4;

struct Contender {
    entry: &'static Entry,
    /// A manager with a pool of its own stands for a process: the server cannot tell the difference.
    processes: Vec<Arc<dyn Rival>>,
    rounds: Vec<Round>,
}

struct Round {
    per_second: f64,
    /// The turns of those who had fewest and most, in parts of an equal share.
    fewest: f64,
    most: f64,
    /// In milliseconds.
    waits: Vec<f64>,
}

pub(super) async fn run(bench: &Bench) {
    let mut table = Table::new([
        "section",
        "processes",
        "rival",
        "turns/s",
        "turns of a process, in equal shares",
        "p50 wait ms",
        "p99 wait ms",
        "longest wait ms",
    ]);
    for (label, section) in [
        ("empty", Duration::ZERO),
        ("10 ms", Duration::from_millis(10)),
    ] {
        for processes in [4, 8] {
            let mut contenders = Vec::new();
            for entry in bench.asked_for(RIVALS) {
                contenders.push(Contender::enter(bench, entry, processes).await);
            }
            for round in 0..=bench.rounds {
                for contender in &mut contenders {
                    let done = contender.play(section, bench.time * LONGER).await;
                    // The first round opens connections. It does not count.
                    if round > 0 {
                        contender.rounds.push(done);
                    }
                }
            }
            for contender in &contenders {
                let labels = [label.to_owned(), processes.to_string()];
                table.row(labels.into_iter().chain(contender.cells()));
            }
        }
    }
    println!("{table}");
}

impl Contender {
    async fn enter(bench: &Bench, entry: &'static Entry, processes: usize) -> Self {
        let place = Place {
            contended: true,
            connections: TASKS_OF_A_PROCESS,
            for_locks: Some(TASKS_OF_A_PROCESS),
            ..bench.place("fairness")
        };
        let mut opened = Vec::new();
        for _ in 0..processes {
            opened.push(entry.open(place.clone()).await);
        }
        Self {
            entry,
            processes: opened,
            rounds: Vec::new(),
        }
    }

    async fn play(&self, section: Duration, time: Duration) -> Round {
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for (process, rival) in self.processes.iter().enumerate() {
            for _ in 0..TASKS_OF_A_PROCESS {
                let rival = Arc::clone(rival);
                tasks.spawn(async move {
                    let mut waits = Vec::new();
                    while started.elapsed() < time {
                        waits.push(turn(&*rival, section).await);
                    }
                    (process, waits)
                });
            }
        }
        let mut turns = vec![0_usize; self.processes.len()];
        let mut waits = Vec::new();
        for (process, of_task) in tasks.join_all().await {
            turns[process] += of_task.len();
            waits.extend(of_task);
        }
        let elapsed = started.elapsed().as_secs_f64();
        waits.sort_by(f64::total_cmp);
        let share = waits.len() as f64 / turns.len() as f64;
        let shares = spread(turns.iter().map(|turns| *turns as f64 / share));
        let shares = shares.expect("there are processes");
        Round {
            per_second: waits.len() as f64 / elapsed,
            fewest: shares.least,
            most: shares.most,
            waits,
        }
    }

    fn cells(&self) -> [String; 6] {
        let mut waits: Vec<_> = self
            .rounds
            .iter()
            .flat_map(|round| &round.waits)
            .copied()
            .collect();
        waits.sort_by(f64::total_cmp);
        let wait = |part| percentile(&waits, part).map_or(NOTHING.to_owned(), number);
        let fewest = median(self.rounds.iter().map(|round| round.fewest));
        let most = median(self.rounds.iter().map(|round| round.most));
        [
            self.entry.name.to_owned(),
            median(self.rounds.iter().map(|round| round.per_second)),
            format!("{fewest}–{most}"),
            wait(0.5),
            wait(0.99),
            wait(1.0),
        ]
    }
}

/// Takes the lock once; how long that took, in milliseconds.
async fn turn(rival: &dyn Rival, section: Duration) -> f64 {
    let waited = OnceLock::new();
    let asked = Instant::now();
    let section = || {
        let now = waited.set(asked.elapsed());
        now.expect("one section");
        async move {
            if !section.is_zero() {
                sleep(section).await;
            }
        }
        .boxed()
    };
    rival.cycle(0, &section).await;
    let waited = waited.get().expect("the section has run");
    waited.as_secs_f64() * 1e3
}
