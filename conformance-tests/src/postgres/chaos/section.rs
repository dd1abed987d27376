use std::{fmt, time::Duration};

use super::{
    clock::Span,
    journal::{Acquisition, AcquisitionId, Journal, Outcome},
};

/// A section, as it turned out.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) worker: usize,
    pub(super) acquisition: AcquisitionId,
    pub(super) key: u8,
    pub(super) span: Span,
    pub(super) token: Option<i64>,
    pub(super) outcome: Option<Outcome>,
    /// The sections around it that hold the same key: it has entered that again.
    pub(super) around: Vec<AcquisitionId>,
}

impl Section {
    /// The section of an acquisition; `None` if it has never begun.
    pub(super) fn of(
        worker: usize,
        journal: &Journal,
        id: AcquisitionId,
        acquisition: &Acquisition,
    ) -> Option<Self> {
        let entered = acquisition.entered?;
        let left = acquisition.left.or(journal.killed);
        Some(Self {
            worker,
            acquisition: id,
            key: entered.key,
            span: Span {
                from: entered.at,
                until: left.unwrap_or(Duration::MAX),
            },
            token: acquisition.token,
            outcome: acquisition.outcome,
            around: around(journal, acquisition),
        })
    }

    /// Whether the other is a part of it that has entered the key again.
    pub(super) fn encloses(&self, other: &Self) -> bool {
        self.worker == other.worker && other.around.contains(&self.acquisition)
    }

    /// Whether the library vouches for it. When a key is entered again it does not ask the server.
    pub(super) fn was_held(&self) -> bool {
        self.outcome == Some(Outcome::Held) && self.around.is_empty()
    }

    pub(super) fn met_silence(&self, history: &[Journal]) -> bool {
        let mut silent = history[self.worker].silent.iter();
        silent.any(|span| self.span.common(*span).is_some())
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Span { from, until } = self.span;
        write!(
            f,
            "key {}, {from:?} to {until:?}: {} of worker {}, {:?}, token {:?}",
            self.key, self.acquisition, self.worker, self.outcome, self.token
        )
    }
}

/// The sections around one that hold the same key.
fn around(journal: &Journal, acquisition: &Acquisition) -> Vec<AcquisitionId> {
    let mut around = Vec::new();
    let mut inner = acquisition.entered;
    let key = inner.map(|entered| entered.key);
    while let Some(id) = inner.and_then(|entered| entered.within) {
        inner = journal
            .acquisitions
            .get(&id)
            .and_then(|outer| outer.entered);
        if inner.map(|entered| entered.key) == key {
            around.push(id);
        }
    }
    around
}
