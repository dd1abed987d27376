use crate::{
    bench::Bench,
    compare::{compare, table},
    load::{Holder, Load, Step, Work},
    rivals::{POOLED, Place, RAW},
};

pub(super) async fn run(bench: &Bench) {
    let load = Load {
        tasks: 16,
        keys: 16,
        step: Step::Cycle(Work::Nothing),
        held: 0..0,
        holder: Holder::Itself,
    };
    let rivals = [&[RAW], POOLED].concat();
    let mut results = Vec::new();
    for connections in [16, 4, 1] {
        let place = Place {
            connections,
            for_locks: Some(connections),
            ..bench.place("many-keys")
        };
        let standings = compare(bench, &rivals, &place, &load).await;
        results.push((connections.to_string(), standings));
    }
    println!("{}", table("pool", results));
}
