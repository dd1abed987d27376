use std::time::Duration;

use crate::{
    bench::Bench,
    compare::{compare, table},
    load::{Holder, Load, Step, Work},
    rivals::{POOLED, Place},
};

const POOLS: [usize; 2] = [64, 8];

/// A section that needs nothing but the lock.
pub(super) async fn run(bench: &Bench) {
    let mut results = Vec::new();
    for (section, work) in [
        ("empty", Work::Nothing),
        ("1 ms", Work::Sleep(Duration::from_millis(1))),
    ] {
        for connections in POOLS {
            let place = Place {
                for_locks: Some(connections),
                ..place(bench, connections)
            };
            let standings = compare(bench, POOLED, &place, &load(work)).await;
            results.push((format!("{section}, {connections}"), standings));
        }
    }
    println!("{}", table("section, pool", results));
}

/// A section that needs another connection of the pool that the locks are taken on.
pub(super) async fn run_with_query(bench: &Bench) {
    let mut results = Vec::new();
    for connections in POOLS {
        let place = place(bench, connections);
        let standings = compare(bench, POOLED, &place, &load(Work::Query)).await;
        results.push((connections.to_string(), standings));
    }
    println!("{}", table("pool", results));
}

fn place(bench: &Bench, connections: usize) -> Place {
    Place {
        connections,
        contended: true,
        ..bench.place("one-key")
    }
}

fn load(work: Work) -> Load {
    Load {
        tasks: 64,
        keys: 1,
        step: Step::Cycle(work),
        held: 0..0,
        holder: Holder::Itself,
    }
}
