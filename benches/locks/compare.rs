use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use crate::{
    bench::Bench,
    holding::Holding,
    load::{Done, Load},
    rivals::{Entry, Place, Rival},
    stats::ratios,
    table::{NOTHING, Table, median, ratio},
};

/// How a rival has done.
pub(crate) struct Standing {
    name: &'static str,
    connections: String,
    /// Rate, slowest steps, processor time and ratio.
    cells: [String; 4],
}

/// A rival under load.
struct Contender<'a> {
    entry: &'a Entry,
    rival: Arc<dyn Rival>,
    holding: Option<Holding>,
    application_name: String,
    /// What it has done so far; `None` once it has stalled.
    rounds: Option<Vec<Done>>,
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
    for entry in entries {
        contenders.push(Contender::enter(entry, place, load).await);
    }
    // The first round opens connections and prepares statements. It does not count.
    for round in 0..=bench.rounds {
        for contender in &mut contenders {
            let Some(rounds) = &mut contender.rounds else {
                continue;
            };
            match load.run(&contender.rival, bench.time).await {
                Some(done) if round > 0 => rounds.push(done),
                Some(_) => {}
                None => contender.rounds = None,
            }
        }
    }
    let mut standings = Vec::new();
    for contender in &contenders {
        standings.push(Standing {
            name: contender.entry.name,
            connections: bench.connections(&contender.application_name).await,
            cells: contender.cells(&contenders),
        });
    }
    for holding in contenders
        .into_iter()
        .filter_map(|contender| contender.holding)
    {
        holding.release().await;
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
        "p99 µs",
        "client CPU µs",
        "ratio",
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
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        let application_name = format!("{}-{number}", place.application_name);
        let place = Place {
            application_name: application_name.clone(),
            ..place.clone()
        };
        let rival = entry.open(place).await;
        let holding = match load.held.is_empty() {
            true => None,
            false => Some(Holding::take(&rival, load.held.clone()).await),
        };
        Self {
            entry,
            rival,
            holding,
            application_name,
            rounds: Some(Vec::new()),
        }
    }

    fn cells(&self, contenders: &[Contender<'_>]) -> [String; 4] {
        let Some(rounds) = &self.rounds else {
            return ["stalls", NOTHING, NOTHING, NOTHING].map(str::to_owned);
        };
        let rates =
            |rounds: &[Done]| -> Vec<_> { rounds.iter().map(|done| done.per_second).collect() };
        let measure = contenders
            .iter()
            .find(|other| Some(other.entry.name) == self.entry.against)
            .and_then(|measure| measure.rounds.as_ref());
        [
            median(rates(rounds)),
            median(rounds.iter().map(|done| done.slowest)),
            median(rounds.iter().filter_map(|done| done.cpu)),
            ratio(measure.and_then(|measure| ratios(rates(rounds), rates(measure)))),
        ]
    }
}
