//! What a history must be like, whatever has happened to the workers.

use std::{cmp::Ordering, collections::BTreeMap, fmt, time::Duration};

use super::{
    clock::Span,
    journal::{Acquisition, AcquisitionId, Journal},
    section::Section,
};

/// How long a section may go on after its lock was lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Where the connection was closed.
    pub(super) closed: Duration,
    /// Where the network went silent.
    pub(super) silent: Duration,
}

/// What the checker has to say about a history.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) violations: Vec<Violation>,
    /// The longest overlap of a section that had lost its lock to a closed connection with one
    /// that had it since; and how many overlaps there are.
    pub(super) closed: (Duration, usize),
    /// The same where a network was silent.
    pub(super) silent: (Duration, usize),
}

/// What must not be.
#[derive(Clone, Debug)]
pub(super) enum Violation {
    /// A section went on for too long after another one of its key had begun.
    Overlap {
        lasted: Duration,
        bound: Duration,
        sections: Box<[Section; 2]>,
    },
    /// The later holder's token is not the larger one.
    TokenOrder { sections: Box<[Section; 2]> },
    /// It has never come to an end, though its worker has.
    Unended {
        worker: usize,
        id: AcquisitionId,
        /// What is known of it.
        acquisition: Acquisition,
    },
}

/// Checks the journals of all workers, the first of which is worker 0.
pub(super) fn check(history: &[Journal], bounds: Bounds) -> Findings {
    let mut findings = Findings::default();
    let mut of_keys: BTreeMap<u8, Vec<Section>> = BTreeMap::new();
    for (worker, journal) in history.iter().enumerate() {
        for (&id, &acquisition) in &journal.acquisitions {
            if !has_ended(&acquisition) && journal.killed.is_none() {
                findings.violations.push(Violation::Unended {
                    worker,
                    id,
                    acquisition,
                });
            }
            if let Some(section) = Section::of(worker, journal, id, &acquisition) {
                of_keys.entry(section.key).or_default().push(section);
            }
        }
    }
    for sections in of_keys.values_mut() {
        sections.sort_by_key(|section| section.span.from);
        check_overlaps(sections, history, bounds, &mut findings);
        check_tokens(sections, &mut findings);
    }
    findings
}

fn has_ended(acquisition: &Acquisition) -> bool {
    let has_left = acquisition.entered.is_none() || acquisition.left.is_some();
    has_left && acquisition.outcome.is_some()
}

fn check_overlaps(
    sections: &[Section],
    history: &[Journal],
    bounds: Bounds,
    findings: &mut Findings,
) {
    for (at, one) in sections.iter().enumerate() {
        let later = sections[at + 1..].iter();
        for other in later.take_while(|other| other.span.from < one.span.until) {
            let Some(Overlap { lasted, silent }) = Overlap::of(one, other, history) else {
                continue;
            };
            let (bound, (longest, count)) = if silent {
                (bounds.silent, &mut findings.silent)
            } else {
                (bounds.closed, &mut findings.closed)
            };
            *longest = lasted.max(*longest);
            *count += 1;
            let neither_lost_it = one.was_held() && other.was_held();
            let bound = if neither_lost_it {
                Duration::ZERO
            } else {
                bound
            };
            if lasted > bound {
                findings.violations.push(Violation::Overlap {
                    lasted,
                    bound,
                    sections: Box::new([one.clone(), other.clone()]),
                });
            }
        }
    }
}

/// Two sections of one key at the same time.
struct Overlap {
    /// For how long the one that had lost the lock went on.
    lasted: Duration,
    /// Whether its network was silent meanwhile.
    silent: bool,
}

impl Overlap {
    fn of(one: &Section, other: &Section, history: &[Journal]) -> Option<Self> {
        let both = one.span.common(other.span)?;
        if one.encloses(other) || other.encloses(one) {
            return None;
        }
        let (span, losers) = match loser(one, other) {
            // That the other has left again gives it back nothing.
            Some(loser) => {
                let until = loser.span.until;
                (Span { until, ..both }, vec![loser])
            }
            None => (both, vec![one, other]),
        };
        let journals = losers.iter().map(|loser| &history[loser.worker]);
        // Who is stopped does nothing, and cannot look after its lock either.
        let lasted = span.without(journals.flat_map(|journal| &journal.stopped));
        let silent = losers.iter().any(|loser| loser.met_silence(history));
        (!lasted.is_zero()).then_some(Self { lasted, silent })
    }
}

/// Which of two that overlap must have lost the lock by the time that both had begun, if that can be
/// told.
fn loser<'a>(one: &'a Section, other: &'a Section) -> Option<&'a Section> {
    match (one.was_held(), other.was_held()) {
        (true, true) => return None,
        (true, false) => return Some(other),
        (false, true) => return Some(one),
        (false, false) => {}
    }
    let (of_one, of_other) = (one.token?, other.token?);
    match of_one.cmp(&of_other) {
        Ordering::Less => Some(one),
        Ordering::Equal => None,
        Ordering::Greater => Some(other),
    }
}

/// A token proves that its section, which asked for it, held the lock after its begin. So sections
/// that have one come in the order in which they held the lock. One that has entered the key again
/// proves nothing by itself: it shares the token that was asked for once.
fn check_tokens(sections: &[Section], findings: &mut Findings) {
    let mut newest: Option<&Section> = None;
    for (at, section) in sections.iter().enumerate() {
        if section.token.is_none() {
            continue;
        }
        let contradicts = if section.around.is_empty() {
            let newer = newest.filter(|newest| newest.token >= section.token);
            newest = newer.or(Some(section));
            newer
        } else {
            let mut earlier = sections[..at].iter().rev();
            let outer = earlier.find(|earlier| earlier.encloses(section));
            outer.filter(|outer| outer.token.is_some() && outer.token != section.token)
        };
        if let Some(other) = contradicts {
            findings.violations.push(Violation::TokenOrder {
                sections: Box::new([other.clone(), section.clone()]),
            });
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overlap {
                lasted,
                bound,
                sections: both,
            } => write!(
                f,
                "an overlap of {lasted:?}, where {bound:?} is allowed:\n  {}\n  {}",
                both[0], both[1]
            ),
            Self::TokenOrder { sections: both } => {
                write!(f, "tokens out of order:\n  {}\n  {}", both[0], both[1])
            }
            Self::Unended {
                worker,
                id,
                acquisition,
            } => write!(f, "no end of {id} of worker {worker}: {acquisition:?}"),
        }
    }
}

#[cfg(test)]
mod tests;
