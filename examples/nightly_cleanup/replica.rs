use std::{fmt, future::Future, str::FromStr};

use advisory::LockManager;

/// What one replica did at night.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ran,
    Skipped,
}

/// One night of one replica. The code is the same for every backend.
///
/// A real job would sweep and return. This one says that it runs, and goes on until every replica
/// has tried; else a slow one might come after it has ended, and run the job again.
pub(crate) async fn night(
    locks: &LockManager,
    report: impl Fn(Outcome),
    all_have_tried: impl Future<Output = ()>,
) -> advisory::Result<()> {
    let ran = locks
        .named("nightly-cleanup")
        .try_with(async || {
            report(Outcome::Ran);
            all_have_tried.await;
        })
        .await?;
    if ran.is_none() {
        report(Outcome::Skipped);
    }
    Ok(())
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ran => "ran",
            Self::Skipped => "skipped",
        })
    }
}

impl FromStr for Outcome {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Ran, Self::Skipped]
            .into_iter()
            .find(|outcome| outcome.to_string() == text)
            .ok_or_else(|| format!("a replica ended without an outcome, but said {text:?}"))
    }
}
