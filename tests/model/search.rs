//! Looks for a program that goes another way on one server than on another.

use std::{
    cell::Cell,
    env,
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed},
    time::{Duration, Instant},
};

use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

use crate::{moment::difference, play::play, program::Program, server::Server};

/// How long it may take to make a program shorter, in each of two ways.
const SHORTENED_FOR: Duration = Duration::from_secs(60);

/// How many times a program that goes two ways is played again.
const AGAIN: u32 = 2;

/// A program that goes two ways, as short as it could be made.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) program: Program,
    pub(crate) difference: String,
    /// How many programs were tried until the first one was found.
    pub(crate) after: u32,
}

impl Found {
    /// Leaves out steps for as long as the program goes two ways without them. What does not make it
    /// shorter now may do so once others are gone, which is more than a strategy tries.
    fn shortened(mut self, compare: impl Fn(&Program) -> Result<(), String>) -> Self {
        let started = Instant::now();
        let mut kept = 0;
        let mut at = 0;
        while kept < self.program.steps.len() && started.elapsed() < SHORTENED_FOR {
            at %= self.program.steps.len();
            let mut program = self.program.clone();
            program.steps.remove(at);
            if let Err(difference) = compare(&program) {
                (self.program, self.difference) = (program, difference);
                kept = 0;
            } else {
                (at, kept) = (at + 1, kept + 1);
            }
        }
        self
    }
}

/// Plays programs on both servers until one goes two ways, which is then made shorter. Of several
/// searches that share `found` only one finds something, and the others stop.
pub(crate) fn search(
    programs: u32,
    seed: u64,
    found: &AtomicBool,
    compare: impl Fn(&Program) -> Result<(), String>,
) -> Option<Found> {
    let mut runner = TestRunner::new(Config {
        cases: programs,
        rng_seed: RngSeed::Fixed(seed),
        // The seed is printed; it is all that is needed to find a program again.
        failure_persistence: None,
        max_shrink_iters: 2_000,
        max_shrink_time: 60_000,
        ..Config::default()
    });
    let (tried, ours) = (Cell::new(0), Cell::new(false));
    let outcome = runner.run(&Program::strategy(), |program| {
        let outcome = if ours.get() {
            compare(&program)
        } else if found.load(Relaxed) {
            Ok(())
        } else {
            tried.set(tried.get() + 1);
            let outcome = compare_again(&program, &compare);
            ours.set(outcome.is_err() && !found.swap(true, Relaxed));
            outcome.or_else(|difference| match ours.get() {
                true => Err(difference),
                false => Ok(()),
            })
        };
        outcome.map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => None,
        Err(TestError::Fail(difference, program)) => {
            let found = Found {
                program,
                difference: difference.message().to_owned(),
                after: tried.get(),
            };
            Some(found.shortened(compare))
        }
        Err(aborted) => panic!("{aborted}"),
    }
}

/// Plays a program that goes two ways again. On a busy machine the server may come to look for a
/// deadlock when the next wait has closed it already, and then find another victim; what is wrong
/// with the double is wrong each time.
fn compare_again(
    program: &Program,
    compare: impl Fn(&Program) -> Result<(), String>,
) -> Result<(), String> {
    let mut outcome = compare(program);
    for _ in 0..AGAIN {
        let Err(difference) = &outcome else { break };
        println!("to be played again: {program:?}\n{difference}");
        outcome = compare(program);
    }
    outcome
}

/// Plays the program on both.
pub(crate) async fn compare(
    program: &Program,
    double: &dyn Server,
    server: &dyn Server,
) -> Result<(), String> {
    static RUNS: AtomicI32 = AtomicI32::new(1);
    let run = RUNS.fetch_add(1, Relaxed);
    let ours = play(program, run, double).await;
    let theirs = play(program, run, server).await;
    difference(&ours, &theirs)
}

/// A number that the environment may give.
pub(crate) fn from_env<T: std::str::FromStr>(name: &str) -> Option<T> {
    let value = env::var(name).ok()?;
    match value.parse() {
        Ok(number) => Some(number),
        Err(_) => panic!("{name} is not a number: {value}"),
    }
}

pub(crate) fn random_seed() -> u64 {
    RandomState::new().hash_one(0)
}
