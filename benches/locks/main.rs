//! The library beside what one would use without it, on a throw-away PostgreSQL.
//!
//! `cargo bench --bench locks` measures everything; names pick workloads:
//! `cargo bench --bench locks -- one-task misses`. The environment has the rest:
//!
//! - `ADVISORY_BENCH_ROUNDS` (5): how often each measurement is made.
//! - `ADVISORY_BENCH_MILLISECONDS` (500): how long one takes.
//! - `ADVISORY_BENCH_RIVALS` (all): a part of their names.
//! - `ADVISORY_BENCH_THREADS` (as many as there are processors): those of the runtime. With several, it
//!   is chance whether a task and its connection's task meet on one of them, and worth a factor of two.
//!
//! The rivals take turns, many in every round, so that whatever else the machine does hits all of
//! them. What counts are the ratios: the median of the rounds, and between what they were.

mod bench;
mod compare;
mod cpu;
mod holding;
mod load;
mod rivals;
mod stats;
mod table;
mod workloads;

use std::env;

use tokio::runtime::Builder;

use crate::{
    bench::{Bench, knob},
    workloads::ALL,
};

fn main() {
    let mut runtime = match knob("ADVISORY_BENCH_THREADS") {
        None => Builder::new_multi_thread(),
        Some(0 | 1) => Builder::new_current_thread(),
        Some(threads) => {
            let mut runtime = Builder::new_multi_thread();
            runtime.worker_threads(threads);
            runtime
        }
    };
    let runtime = runtime.enable_all().build();
    runtime.expect("a runtime").block_on(measure());
}

async fn measure() {
    // Cargo adds options of its own.
    let names: Vec<_> = env::args()
        .skip(1)
        .filter(|name| !name.starts_with('-'))
        .collect();
    let is_asked_for =
        |name: &str| names.is_empty() || names.iter().any(|part| name.contains(part));

    let bench = Bench::start();
    for workload in ALL.iter().filter(|workload| is_asked_for(workload.name)) {
        println!("### {} (`{}`)\n", workload.title, workload.name);
        (workload.run)(&bench).await;
    }
}
