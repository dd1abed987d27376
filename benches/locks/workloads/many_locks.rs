//! Thousands of locks on one connection.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
    time::Instant,
};

use futures::{FutureExt, future::ready};

use crate::{
    bench::Bench,
    rivals::{
        Entry, HANDWRITTEN, PG_ADVISORY_LOCK, RAW, Rival, SQLX, SQLX_BATCHED, TOKIO_POSTGRES,
        TOKIO_POSTGRES_BATCHED,
    },
    stats::ratios,
    table::{Table, median, ratio},
};

const RIVALS: &[Entry] = &[
    HANDWRITTEN,
    RAW,
    TOKIO_POSTGRES,
    TOKIO_POSTGRES_BATCHED,
    PG_ADVISORY_LOCK,
    SQLX,
    SQLX_BATCHED,
];

struct Contender {
    entry: &'static Entry,
    rival: Arc<dyn Rival>,
    /// How many locks it took in a second, in each round.
    taken: Vec<f64>,
    /// How many it gave back.
    given_back: Vec<f64>,
}

pub(super) async fn run(bench: &Bench) {
    let mut table = Table::new([
        "locks",
        "rival",
        "taken/s",
        "given back/s",
        "ratio of taken",
        "ratio of given back",
    ]);
    for locks in [1000, 10_000] {
        let mut contenders = Vec::new();
        for entry in bench.asked_for(RIVALS) {
            contenders.push(Contender {
                entry,
                rival: entry.open(bench.place("many-locks")).await,
                taken: Vec::new(),
                given_back: Vec::new(),
            });
        }
        for _ in 0..bench.rounds {
            for contender in &mut contenders {
                contender.play(0..locks).await;
            }
        }
        for contender in &contenders {
            table.row(
                [locks.to_string()]
                    .into_iter()
                    .chain(contender.cells(&contenders)),
            );
        }
    }
    println!("{table}");
}

impl Contender {
    async fn play(&mut self, keys: Range<i64>) {
        let count = (keys.end - keys.start) as f64;
        let held = OnceLock::new();
        let section = || {
            held.set(Instant::now()).expect("one section");
            ready(()).boxed()
        };
        let started = Instant::now();
        self.rival.hold(keys, &section).await;
        let held = *held.get().expect("the section has run");
        self.taken.push(count / (held - started).as_secs_f64());
        self.given_back.push(count / held.elapsed().as_secs_f64());
    }

    fn cells(&self, contenders: &[Contender]) -> [String; 5] {
        let measure = contenders
            .iter()
            .find(|other| Some(other.entry.name) == self.entry.against);
        let ratio_of = |of: fn(&Contender) -> &Vec<f64>| {
            let measure = measure?;
            ratios(of(self).iter().copied(), of(measure).iter().copied())
        };
        [
            self.entry.name.to_owned(),
            median(self.taken.iter().copied()),
            median(self.given_back.iter().copied()),
            ratio(ratio_of(|contender| &contender.taken)),
            ratio(ratio_of(|contender| &contender.given_back)),
        ]
    }
}
