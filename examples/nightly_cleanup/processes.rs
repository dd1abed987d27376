//! Replicas as processes: this program, started once for each of them.

use std::{
    env,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use advisory::{LockManager, TokioPostgresBackend};
use tokio::io::AsyncReadExt;

use crate::{REPLICAS, Result, replica, replica::Outcome};

/// Lets every replica try, and then lets the winner end.
pub(crate) fn night() -> Result<Vec<Outcome>> {
    let mut replicas: Vec<Child> = (0..REPLICAS).map(|_| spawn()).collect::<Result<_>>()?;
    let outcomes: Result<Vec<_>> = replicas.iter_mut().map(outcome).collect();
    for mut replica in replicas {
        // Waiting closes the replica's standard input, which is what the winner waits for.
        let status = replica.wait()?;
        if !status.success() {
            return Err(format!("a replica failed with {status}").into());
        }
    }
    outcomes
}

fn spawn() -> Result<Child> {
    let replica = Command::new(env::current_exe()?)
        .arg("replica")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    Ok(replica)
}

/// The one line that a replica writes, as soon as it knows.
fn outcome(replica: &mut Child) -> Result<Outcome> {
    let output = replica.stdout.take().ok_or("a replica has no output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    Ok(line.trim_end().parse()?)
}

/// What each of the processes does.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn replica() -> Result<()> {
    let backend = TokioPostgresBackend::connect(&env::var("DATABASE_URL")?).await?;
    let locks = LockManager::new(backend);
    let report = |outcome| println!("{outcome}");
    let all_have_tried = async {
        // Ends when the parent closes the pipe, or has gone.
        _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
    };
    replica::night(&locks, report, all_have_tried).await?;
    locks.close().await?;
    Ok(())
}
