use std::{collections::BTreeMap, fmt, time::Duration};

use super::{
    BOUNDS,
    checker::{Findings, Violation},
    clock::Span,
    fault::{Fault, Strike},
    journal::{Journal, Outcome},
};

/// How much before a violation its cause may lie.
const BEFORE: Duration = Duration::from_secs(10);

/// Says what has happened, in numbers, and what should not have.
#[derive(Debug)]
pub(super) struct Report<'a> {
    pub(super) history: &'a [Journal],
    pub(super) strikes: &'a [Strike],
    pub(super) findings: &'a Findings,
}

impl Report<'_> {
    /// How many acquisitions ended in which way.
    pub(super) fn outcomes(&self) -> BTreeMap<Outcome, usize> {
        let journals = self.history.iter();
        let acquisitions = journals.flat_map(|journal| journal.acquisitions.values());
        count(acquisitions.filter_map(|acquisition| acquisition.outcome))
    }

    fn faults(&self) -> BTreeMap<Fault, usize> {
        count(self.strikes.iter().map(|strike| strike.fault))
    }

    fn sections(&self) -> (usize, usize) {
        let journals = self.history.iter();
        let acquisitions = journals.flat_map(|journal| journal.acquisitions.values());
        let entered = acquisitions.filter(|acquisition| acquisition.entered.is_some());
        let fenced = entered.clone().filter(|entered| entered.token.is_some());
        (entered.count(), fenced.count())
    }

    /// The faults that may have to do with a violation.
    fn strikes_around(&self, violation: &Violation) -> Vec<&Strike> {
        let (Violation::Overlap { sections, .. } | Violation::TokenOrder { sections }) = violation
        else {
            return Vec::new();
        };
        let spans = sections.each_ref().map(|section| section.span);
        let around = Span {
            from: spans[0].from.min(spans[1].from).saturating_sub(BEFORE),
            until: spans[0].until.max(spans[1].until),
        };
        let strikes = self.strikes.iter();
        strikes
            .filter(|strike| {
                let concerns = |worker| sections.iter().any(|s| s.worker == worker);
                strike.span.common(around).is_some() && strike.worker.is_none_or(concerns)
            })
            .collect()
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sections, fenced) = self.sections();
        let faults = self.faults();
        let workers = self.history.len();
        writeln!(
            f,
            "{workers} workers, {sections} sections, {fenced} of them with a token"
        )?;
        writeln!(f, "{} faults: {faults:?}", self.strikes.len())?;
        writeln!(f, "acquisitions: {:?}", self.outcomes())?;
        for (what, (longest, count), bound) in [
            ("closed connections", self.findings.closed, BOUNDS.closed),
            ("silent networks", self.findings.silent, BOUNDS.silent),
        ] {
            writeln!(
                f,
                "{what}: {count} overlaps, the longest {longest:?} of {bound:?}"
            )?;
        }
        for violation in &self.findings.violations {
            writeln!(f, "{violation}")?;
            for strike in self.strikes_around(violation) {
                writeln!(f, "  {strike}")?;
            }
        }
        Ok(())
    }
}

fn count<T: Ord>(things: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for thing in things {
        *counts.entry(thing).or_default() += 1;
    }
    counts
}
