use crate::{
    bench::Bench,
    compare::{compare, table},
    load::{Load, Step, Work},
    rivals::{POOLED, RAW},
};

pub(super) async fn run(bench: &Bench) {
    let load = Load {
        tasks: 1,
        keys: 1,
        step: Step::Cycle(Work::Nothing),
        held: 0..0,
    };
    let rivals = [&[RAW], POOLED].concat();
    let standings = compare(bench, &rivals, &bench.place("one-task"), &load).await;
    println!("{}", table("tasks", vec![("1".to_owned(), standings)]));
}
