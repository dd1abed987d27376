use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};

use crate::{
    bench::Bench,
    holding::Holding,
    load::{Done, Holder, Load},
    rivals::{Entry, Place, Rival},
    stats::ratios,
    table::{NOTHING, Table, median, ratio},
};

/// How many keys a rival has to itself.
const KEYS: i64 = 1_000_000;

/// How a rival has done.
pub(crate) struct Standing {
    name: &'static str,
    connections: String,
    /// From the rate on.
    cells: [String; 6],
}

/// A rival under load.
struct Contender<'a> {
    entry: &'a Entry,
    rival: Arc<dyn Rival>,
    /// None of its keys is another's, who might have left it locked.
    first_key: i64,
    holding: Option<Holding>,
    application_name: String,
    /// The round under way, and those before it.
    round: Done,
    rounds: Vec<Done>,
    stalls: bool,
}

/// Has rivals take turns under the same load, round by round.
///
/// What else the machine does meanwhile hits all of them, so the ratios say more than the numbers.
pub(crate) async fn compare(
    bench: &Bench,
    entries: &[Entry],
    place: &Place,
    load: &Load,
) -> Vec<Standing> {
    let mut contenders = Vec::new();
    for entry in bench.asked_for(entries) {
        contenders.push(Contender::enter(entry, place, load).await);
    }
    // Connections are opened and statements prepared before it counts.
    for contender in &mut contenders {
        contender.take_turn(load, bench.time).await;
        contender.round = Done::default();
    }
    for _ in 0..bench.rounds {
        for _ in 0..load.turns() {
            for contender in &mut contenders {
                contender.take_turn(load, bench.time / load.turns()).await;
            }
        }
        for contender in &mut contenders {
            contender.rounds.push(mem::take(&mut contender.round));
        }
    }
    for contender in &mut contenders {
        if let Some(holding) = contender.holding.take() {
            holding.release().await;
        }
    }
    let mut standings = Vec::new();
    for contender in &contenders {
        standings.push(Standing {
            name: contender.entry.name,
            connections: bench.end_connections(&contender.application_name).await,
            cells: contender.cells(&contenders),
        });
    }
    standings
}

/// How rivals did under several loads, each with what sets it apart.
pub(crate) fn table(label: &'static str, loads: Vec<(String, Vec<Standing>)>) -> Table {
    let mut table = Table::new([
        label,
        "rival",
        "connections",
        "per second",
        "p50 µs",
        "p99 µs",
        "client CPU µs",
        "ratio",
        "ratio by p50",
    ]);
    for (label, standings) in loads {
        for standing in standings {
            let cells = [
                label.clone(),
                standing.name.to_owned(),
                standing.connections,
            ];
            table.row(cells.into_iter().chain(standing.cells));
        }
    }
    table
}

impl<'a> Contender<'a> {
    async fn enter(entry: &'a Entry, place: &Place, load: &Load) -> Self {
        static NEXT: AtomicI64 = AtomicI64::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        let first_key = number * KEYS;
        let application_name = format!("{}-{number}", place.application_name);
        let place = Place {
            application_name: application_name.clone(),
            ..place.clone()
        };
        let rival = entry.open(place.clone()).await;
        let holder = match load.holder {
            Holder::Itself => Arc::clone(&rival),
            Holder::Another => entry.open(place).await,
        };
        let held = first_key + load.held.start..first_key + load.held.end;
        let holding = match held.is_empty() {
            true => None,
            false => Some(Holding::take(holder, held).await),
        };
        Self {
            entry,
            rival,
            first_key,
            holding,
            application_name,
            round: Done::default(),
            rounds: Vec::new(),
            stalls: false,
        }
    }

    async fn take_turn(&mut self, load: &Load, time: Duration) {
        if self.stalls {
            return;
        }
        match load.run(&self.rival, self.first_key, time).await {
            Some(done) => self.round.add(done),
            None => self.stalls = true,
        }
    }

    fn cells(&self, contenders: &[Contender<'_>]) -> [String; 6] {
        if self.stalls {
            return ["stalls", NOTHING, NOTHING, NOTHING, NOTHING, NOTHING].map(str::to_owned);
        }
        let measure = contenders
            .iter()
            .find(|other| Some(other.entry.name) == self.entry.against && !other.stalls);
        [
            median(self.rates()),
            median(self.latencies(0.5)),
            median(self.latencies(0.99)),
            median(self.rounds.iter().map(Done::cpu)),
            ratio(measure.and_then(|measure| ratios(self.rates(), measure.rates()))),
            ratio(measure.and_then(|measure| ratios(measure.latencies(0.5), self.latencies(0.5)))),
        ]
    }

    fn rates(&self) -> impl Iterator<Item = f64> {
        self.rounds.iter().map(Done::per_second)
    }

    fn latencies(&self, part: f64) -> impl Iterator<Item = f64> {
        let rounds = self.rounds.iter();
        rounds.filter_map(move |done| done.percentile(part))
    }
}
