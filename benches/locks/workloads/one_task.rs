use crate::{
    bench::Bench,
    compare::{compare, table},
    load::{Holder, Load, Step, Work},
    rivals::{MEMORY, POOLED, RAW},
};

pub(super) async fn run(bench: &Bench) {
    let load = Load {
        tasks: 1,
        keys: 1,
        step: Step::Cycle(Work::Nothing),
        held: 0..0,
        holder: Holder::Itself,
    };
    let rivals = [&[RAW], POOLED, &[MEMORY]].concat();
    let standings = compare(bench, &rivals, &bench.place("one-task"), &load).await;
    println!("{}", table("tasks", vec![("1".to_owned(), standings)]));
}
