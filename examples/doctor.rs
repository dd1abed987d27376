//! Looks at a server, and at what is in front of it, and says whether locks can be taken there.
//!
//! ```sh
//! DATABASE_URL=postgres://user@host/database cargo run --example doctor
//! DATABASE_URL=postgres://user@pooler/database cargo run --example doctor -- --pinned
//! ```
//!
//! With `--pinned` it judges for pinned mode, which is for poolers in transaction mode. It ends with
//! an error if locks are refused. For a program of your own it is one line: `locks.check().await?`.

use std::{env, error::Error, process::ExitCode};

use advisory::{LockManager, PostgresOptions, TokioPostgresBackend};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

#[tokio::main]
async fn main() -> ExitCode {
    match look().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprint!("{error}");
            // The causes are not in its text.
            let mut cause = error.source();
            while let Some(next) = cause {
                eprint!(": {next}");
                cause = next.source();
            }
            eprintln!();
            ExitCode::FAILURE
        }
    }
}

/// Prints the report; whether locks can be taken.
async fn look() -> Result<bool> {
    let url = env::var("DATABASE_URL")
        .map_err(|_| "this example needs a server: DATABASE_URL=postgres://user@host/database")?;
    let options = match env::args().nth(1).as_deref() {
        None => PostgresOptions::new(),
        Some("--pinned") => PostgresOptions::new().pinned(),
        Some(other) => return Err(format!("there is an option --pinned, and not {other}").into()),
    };
    let backend = TokioPostgresBackend::connect(&url).await?;
    let locks = LockManager::new(backend.with_options(options));

    let report = locks.check().await?;
    println!("{report}");
    locks.close().await?;
    Ok(report.is_fit())
}
