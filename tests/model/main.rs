//! Random programs over several owners, on the memory backend and on PostgreSQL, compared step by
//! step: what differs is a fault of the double.
//!
//! Each program is played on both. After each step the player waits until it has had its effect,
//! and takes down who holds what, who waits for what, and what every owner was told. Nothing of
//! that may be left to chance:
//!
//! - A wait goes by turns, and between two of them it is out of the queue for an instant. So most
//!   programs make the turns endless, and the others let nobody queue behind a wait
//!   ([`program::Turns`]).
//! - The server finds a deadlock some time after the wait that closes it. So the player goes on when
//!   every wait is old enough to have been looked at, and nobody waits for each other any more;
//!   then the victim is the wait that came last, as on the double ([`server::Seen`]).
//! - What an owner had better not do is in `play/rules.rs`.
//!
//! | variable | |
//! |---|---|
//! | `ADVISORY_MODEL_PROGRAMS` | how many programs are played |
//! | `ADVISORY_MODEL_SEED` | where they start; printed with a program that goes two ways, which it finds again among as many programs |

mod journal;
mod lie;
mod moment;
mod outcome;
mod play;
mod program;
mod search;
mod server;
mod stop;
mod task;
mod watch;

use std::{sync::atomic::AtomicBool, thread};

use tokio::runtime::{Builder, Runtime};

use crate::{
    lie::{Liar, Lie},
    search::{Found, compare, from_env, random_seed, search},
    server::{Double, Postgres},
};

/// How many programs are played unless the environment says otherwise.
const PROGRAMS: u32 = 300;

/// How many programs are played at the same time; most of the time they wait.
const JOBS: u32 = 8;

#[test]
fn the_double_does_what_the_server_does() {
    let programs = from_env("ADVISORY_MODEL_PROGRAMS").unwrap_or(PROGRAMS);
    let seed: u64 = from_env("ADVISORY_MODEL_SEED").unwrap_or_else(random_seed);
    let found = AtomicBool::new(false);
    thread::scope(|scope| {
        for job in 0..JOBS {
            let programs = programs / JOBS + u32::from(job < programs % JOBS);
            let found = &found;
            scope.spawn(move || {
                let seed = seed.wrapping_add(job.into());
                search_on_postgres(programs, seed, found);
            });
        }
    });
}

fn search_on_postgres(programs: u32, seed: u64, found: &AtomicBool) {
    let runtime = runtime();
    let server = runtime.block_on(Postgres::start());
    let outcome = search(programs, seed, found, |program| {
        runtime.block_on(compare(program, &Double::of(&server), &server))
    });
    runtime.block_on(server.remove());
    if let Some(Found {
        program,
        difference,
        after,
    }) = outcome
    {
        panic!(
            "program {after} of ADVISORY_MODEL_SEED={seed} goes two ways\n{program:?}\n{difference}"
        );
    }
}

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("tokio starts")
}

/// The test of the test.
mod a_double_is_found_out {
    use super::*;

    #[test]
    fn that_frees_both_modes() {
        assert_found(Lie::FreesBothModes);
    }

    #[test]
    fn that_hides_holders() {
        assert_found(Lie::HidesHolders);
    }

    #[test]
    fn that_hides_deadlocks() {
        assert_found(Lie::HidesDeadlocks);
    }

    fn assert_found(lie: Lie) {
        let runtime = runtime();
        let found = search(2_000, 1, &AtomicBool::default(), |program| {
            runtime.block_on(compare(program, &Liar::new(lie), &Double::default()))
        });
        let found = found.unwrap_or_else(|| panic!("{lie:?} was not found"));
        assert!(found.program.steps.len() <= 6, "{lie:?}: {found:#?}");
    }
}
