use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time since the host was started, by the one clock that all of its processes share. Unlike an
/// [`Instant`](std::time::Instant) it can be told to another process.
pub(super) fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    time.try_into().expect("the host was started before now")
}

/// From one moment to a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: Duration,
    pub(super) until: Duration,
}

impl Span {
    /// The time that something takes.
    pub(super) fn of<T>(something: impl FnOnce() -> T) -> (Self, T) {
        let from = now();
        let output = something();
        (Self { from, until: now() }, output)
    }

    /// What two spans have in common, unless it is nothing.
    pub(super) fn common(self, other: Self) -> Option<Self> {
        let from = self.from.max(other.from);
        let until = self.until.min(other.until);
        (from < until).then_some(Self { from, until })
    }

    /// How much of it is left without others, which may overlap.
    pub(super) fn without<'a>(self, others: impl IntoIterator<Item = &'a Self>) -> Duration {
        let others = others.into_iter();
        let mut within: Vec<_> = others.filter_map(|other| self.common(*other)).collect();
        within.sort_by_key(|span| span.from);
        let mut left = Duration::ZERO;
        let mut at = self.from;
        for span in within {
            left += span.from.saturating_sub(at);
            at = at.max(span.until);
        }
        left + self.until.saturating_sub(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: u64, until: u64) -> Span {
        Span {
            from: Duration::from_secs(from),
            until: Duration::from_secs(until),
        }
    }

    #[test]
    fn spans_that_only_touch_have_nothing_in_common() {
        assert_eq!(span(0, 3).common(span(3, 5)), None);
        assert_eq!(span(0, 3).common(span(2, 5)), Some(span(2, 3)));
        assert_eq!(span(0, 9).common(span(2, 5)), Some(span(2, 5)));
    }

    #[test]
    fn what_is_taken_out_twice_counts_once() {
        let left = |others: &[Span]| span(10, 20).without(others).as_secs();
        assert_eq!(left(&[]), 10);
        assert_eq!(left(&[span(0, 5), span(25, 30)]), 10);
        assert_eq!(left(&[span(14, 16), span(0, 12), span(15, 18)]), 4);
        assert_eq!(left(&[span(12, 19), span(13, 14)]), 3);
        assert_eq!(left(&[span(0, 30)]), 0);
    }
}
