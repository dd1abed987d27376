//! What comes of what a task is told.

use advisory::{Error, LockMode, Section, Stage};

use crate::journal::{Journal, Tag};

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It made no sense at the moment.
    Nothing,
    Locked,
    Missed,
    Freed,
    Entered,
    /// A section came to its end.
    Left,
    /// A wait or a section was dropped.
    Dropped,
    /// So many of its guards, and its section, are known to be lost.
    Lost(usize),
    Failed(Failure),
    /// The task has ended.
    Over,
}

/// An error, as far as it is the same on every server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Timeout(Stage, Vec<(Option<Tag>, LockMode)>),
    Deadlock,
    Lost(Section),
    Backend,
    Other(String),
}

impl Outcome {
    /// What an error means, to one who knows whose the sessions are that it names.
    pub(crate) fn failed(error: &Error, journal: &Journal) -> Self {
        Self::Failed(match error {
            Error::Timeout { stage, holders, .. } => {
                let holders = holders.iter();
                let tagged = holders.map(|holder| {
                    let tag = journal.tag(holder.session.number());
                    (tag, holder.mode)
                });
                let mut holders: Vec<_> = tagged.collect();
                holders.sort_unstable();
                Failure::Timeout(*stage, holders)
            }
            Error::Deadlock { .. } => Failure::Deadlock,
            Error::Lost { section, .. } => Failure::Lost(*section),
            Error::Backend(_) => Failure::Backend,
            other => Failure::Other(format!("{other:?}")),
        })
    }

    /// Whether a section was stopped because its lock was lost.
    pub(crate) fn is_stop(&self) -> bool {
        *self == Self::Failed(Failure::Lost(Section::Stopped))
    }
}
