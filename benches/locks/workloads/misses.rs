use crate::{
    bench::Bench,
    compare::{compare, table},
    load::{Holder, Load, Step},
    rivals::{HANDWRITTEN, MEMORY, PG_ADVISORY_LOCK, SQLX, TOKIO_POSTGRES},
};

pub(super) async fn run(bench: &Bench) {
    let mut results = Vec::new();
    for (label, holder) in [
        ("this process", Holder::Itself),
        ("another one", Holder::Another),
    ] {
        let load = Load {
            tasks: 1,
            keys: 1,
            step: Step::Miss,
            held: 0..1,
            holder,
        };
        let on_a_server = [HANDWRITTEN, TOKIO_POSTGRES, PG_ADVISORY_LOCK, SQLX];
        // Another double would not share its locks.
        let double: &[_] = match holder {
            Holder::Itself => &[MEMORY],
            Holder::Another => &[],
        };
        let rivals = [&on_a_server, double].concat();
        let standings = compare(bench, &rivals, &bench.place("misses"), &load).await;
        results.push((label.to_owned(), standings));
    }
    println!("{}", table("held by", results));
}
