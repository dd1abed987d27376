//! Three replicas of a service wake up for the same nightly job: one runs it, the others skip it.
//!
//! ```sh
//! cargo run --example nightly_cleanup          # replicas are threads, the locks are in memory
//! cargo run --example nightly_cleanup -- 20    # twenty nights
//!
//! # Replicas are processes, the locks are on PostgreSQL:
//! DATABASE_URL=postgres://user@host/database cargo run --example nightly_cleanup
//! ```
//!
//! What an application would write is in `replica.rs`. The rest is there to make sure that the
//! replicas really meet, and to show what came of it. A night on which they did not meet is a
//! failure.

mod processes;
mod replica;
mod threads;

use std::{env, error::Error, num::NonZero, process::ExitCode};

use replica::Outcome;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

const REPLICAS: usize = 3;
const USAGE: &str = "usage: nightly_cleanup [NIGHTS]";

fn main() -> ExitCode {
    match run(env::args().nth(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nightly_cleanup: {}", with_causes(&*error));
            ExitCode::FAILURE
        }
    }
}

fn run(argument: Option<String>) -> Result<()> {
    match argument.as_deref() {
        Some("replica") => processes::replica(),
        Some(nights) => show(nights.parse::<NonZero<usize>>().map_err(|_| USAGE)?.get()),
        None => show(3),
    }
}

fn show(nights: usize) -> Result<()> {
    let night: Box<dyn Fn() -> Result<Vec<Outcome>>> = if env::var_os("DATABASE_URL").is_some() {
        println!("{REPLICAS} replicas, each a process of its own; the locks are on PostgreSQL.\n");
        Box::new(processes::night)
    } else {
        println!("{REPLICAS} replicas, each a thread of its own; the locks are in memory.");
        println!("(With DATABASE_URL: processes, and PostgreSQL.)\n");
        let replicas = threads::replicas();
        Box::new(move || threads::night(&replicas))
    };

    let names = (1..=REPLICAS).map(|replica| format!("replica {replica}"));
    println!("{}", row("", names));
    for number in 1..=nights {
        let outcomes = night()?;
        println!("{}", row(&format!("night {number}"), &outcomes));
        check(&outcomes)?;
    }
    println!("\nEach night one replica ran the job. The others came while it ran, and skipped it.");
    Ok(())
}

fn check(outcomes: &[Outcome]) -> Result<()> {
    let ran = outcomes.iter().filter(|&&it| it == Outcome::Ran).count();
    if ran == 1 {
        Ok(())
    } else {
        Err(format!("{ran} replicas ran the job at the same time, not one").into())
    }
}

fn row(head: &str, cells: impl IntoIterator<Item: ToString>) -> String {
    let cells = cells
        .into_iter()
        .map(|cell| format!("{:12}", cell.to_string()));
    let line = format!("{head:10}{}", cells.collect::<String>());
    line.trim_end().to_owned()
}

fn with_causes(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    let texts: Vec<_> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}
