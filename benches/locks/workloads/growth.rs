use crate::{
    bench::Bench,
    compare::{compare, table},
    load::{Holder, Load, Step, Work},
    rivals::{Entry, HANDWRITTEN, PG_ADVISORY_LOCK, Place, SQLX, TOKIO_POSTGRES},
};

const RIVALS: &[Entry] = &[HANDWRITTEN, TOKIO_POSTGRES, PG_ADVISORY_LOCK, SQLX];
/// No application has more, whatever the number of its tasks.
const LARGEST_POOL: usize = 100;

/// From one to a thousand tasks that want the same key.
pub(super) async fn with_waiters(bench: &Bench) {
    let mut results = Vec::new();
    for tasks in [1, 10, 100, 1000] {
        let connections = tasks.min(LARGEST_POOL);
        let place = Place {
            connections,
            for_locks: Some(connections),
            contended: true,
            ..bench.place("waiters")
        };
        let load = Load {
            tasks,
            keys: 1,
            step: Step::Cycle(Work::Nothing),
            held: 0..0,
            holder: Holder::Itself,
        };
        results.push((
            tasks.to_string(),
            compare(bench, RIVALS, &place, &load).await,
        ));
    }
    println!("{}", table("tasks", results));
}

/// One task, beside a session of the same process that holds up to ten thousand other locks.
pub(super) async fn with_locks(bench: &Bench) {
    let mut results = Vec::new();
    for locks in [1, 10, 100, 1000, 10_000] {
        let load = Load {
            tasks: 1,
            keys: 1,
            step: Step::Cycle(Work::Nothing),
            held: 1..1 + locks,
            holder: Holder::Itself,
        };
        let place = bench.place("held");
        results.push((
            locks.to_string(),
            compare(bench, RIVALS, &place, &load).await,
        ));
    }
    println!("{}", table("held", results));
}
