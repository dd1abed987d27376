//! What is measured.

mod fairness;
mod growth;
mod hand_over;
mod many_keys;
mod many_locks;
mod misses;
mod one_key;
mod one_task;

use futures::future::BoxFuture;

use crate::bench::Bench;

/// A measurement that can be asked for by its name.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) run: for<'a> fn(&'a Bench) -> BoxFuture<'a, ()>,
}

pub(crate) const ALL: &[Workload] = &[
    Workload {
        name: "one-task",
        title: "One task, an empty section",
        run: |bench| Box::pin(one_task::run(bench)),
    },
    Workload {
        name: "many-keys",
        title: "16 tasks, each with a key of its own",
        run: |bench| Box::pin(many_keys::run(bench)),
    },
    Workload {
        name: "one-key",
        title: "64 tasks, all for the same key",
        run: |bench| Box::pin(one_key::run(bench)),
    },
    Workload {
        name: "query-inside",
        title: "64 tasks for one key, with a query on the same pool inside the section",
        run: |bench| Box::pin(one_key::run_with_query(bench)),
    },
    Workload {
        name: "many-locks",
        title: "Thousands of locks on one connection",
        run: |bench| Box::pin(many_locks::run(bench)),
    },
    Workload {
        name: "misses",
        title: "One task that tries in vain",
        run: |bench| Box::pin(misses::run(bench)),
    },
    Workload {
        name: "hand-over",
        title: "From the end of a section to the beginning of the next one, in another process",
        run: |bench| Box::pin(hand_over::run(bench)),
    },
    Workload {
        name: "fairness",
        title: "Several processes with four tasks each, all for the same key",
        run: |bench| Box::pin(fairness::run(bench)),
    },
    Workload {
        name: "waiters",
        title: "More and more tasks that want the same key",
        run: |bench| Box::pin(growth::with_waiters(bench)),
    },
    Workload {
        name: "held",
        title: "One task, beside a session of its process that holds more and more other locks",
        run: |bench| Box::pin(growth::with_locks(bench)),
    },
];
