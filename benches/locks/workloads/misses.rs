use crate::{
    bench::Bench,
    compare::{compare, table},
    load::{Load, Step},
    rivals::{HANDWRITTEN, MEMORY, PG_ADVISORY_LOCK, RAW, SQLX, TOKIO_POSTGRES},
};

pub(super) async fn run(bench: &Bench) {
    let place = bench.place("misses");
    let here = Load {
        tasks: 1,
        keys: 1,
        step: Step::Miss,
        held: 0..1,
    };
    let rivals = [HANDWRITTEN, TOKIO_POSTGRES, PG_ADVISORY_LOCK, SQLX, MEMORY];
    let held_here = compare(bench, &rivals, &place, &here).await;

    let elsewhere = Load { held: 0..0, ..here };
    let rivals = [HANDWRITTEN, RAW, TOKIO_POSTGRES, PG_ADVISORY_LOCK, SQLX];
    let holder = bench.observer().await;
    holder.run("SELECT pg_advisory_lock(0)").await;
    let held_elsewhere = compare(bench, &rivals, &place, &elsewhere).await;

    let results = vec![
        ("this process".to_owned(), held_here),
        ("another one".to_owned(), held_elsewhere),
    ];
    println!("{}", table("held by", results));
}
