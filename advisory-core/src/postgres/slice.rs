//! How long one turn of waiting is.
//!
//! A wait on the server is a statement with a snapshot: it holds up an index build or a vacuum for
//! as long as it lasts, and an index build that it holds up for longer than the server's
//! `deadlock_timeout`, here D, may be picked as a deadlock's victim. So a wait goes by short
//! slices, and only two kinds of waiters get longer ones.

use std::time::Duration;

use crate::spi::Turn;

/// No short slice is longer than this, however patient the server is: an abandoned wait stays
/// queued to the end of its slice.
const SHORT_CAP: Duration = Duration::from_secs(1);
/// Nor is one of a writer behind readers, while somebody wants its session.
const WANTED_CAP: Duration = Duration::from_secs(5);
/// Nor one that is meant to outlast readers.
const WRITER_CAP: Duration = Duration::from_secs(30);
/// The server counts in milliseconds, and reads zero as no limit.
const LEAST: Duration = Duration::from_millis(1);

/// How long to wait this time, on a server with this `deadlock_timeout`.
///
/// - A slice is normally at most 0.4 D, so that an index build behind it survives.
/// - A session that may be part of a cycle gets [what finds it](finds_deadlocks_within). That is for a
///   session that somebody waits for, and no other: beside an index build it is chance whose check
///   comes first. The news of a loss has to wait for it; or else a deadlock would go on for ever.
/// - Each end of a slice lets queued readers in, so a writer behind them doubles its slices until
///   it outlasts those that are there. While somebody wants the session it stops at 1.5 D.
pub(super) fn length(turn: Turn, deadlock_timeout: Duration, in_a_cycle: bool) -> Duration {
    let long = finds_deadlocks_within(deadlock_timeout);
    let slice = if turn.behind_readers > 0 {
        let cap = if turn.wanted {
            long.min(WANTED_CAP)
        } else {
            WRITER_CAP
        };
        let doubled = 2_u32.saturating_pow(turn.behind_readers);
        short(deadlock_timeout).saturating_mul(doubled).min(cap)
    } else {
        short(deadlock_timeout)
    };
    let mut slice = slice.min(turn.patience.unwrap_or(slice));
    if in_a_cycle {
        // Behind readers, too: they may be part of it.
        slice = slice.max(long.min(turn.patience_in_a_cycle.unwrap_or(long)));
    }
    slice.max(LEAST)
}

/// How long a wait has to be for the server to find a cycle that it is part of: it looks once the wait
/// has lasted D. Where D is [longer than any turn](Turn::LONGEST), it finds none.
pub(super) fn finds_deadlocks_within(deadlock_timeout: Duration) -> Duration {
    deadlock_timeout.mul_f64(1.5).min(Turn::LONGEST)
}

/// Whether it is time to ask if somebody waits for the session, which is what makes a cycle. Not
/// before a wait has lasted D, for most end sooner; and not while somebody wants the session.
pub(super) fn is_suspicious(turn: Turn, deadlock_timeout: Duration) -> bool {
    turn.holding && !turn.wanted && turn.waited > deadlock_timeout
}

/// Jittered, so that waiters that came together do not leave the queue together.
fn short(deadlock_timeout: Duration) -> Duration {
    let most = deadlock_timeout.mul_f64(0.4).min(SHORT_CAP);
    most.mul_f64(1.0 - 0.25 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const D: Duration = Duration::from_secs(1);
    const SHORT: std::ops::RangeInclusive<Duration> =
        Duration::from_millis(300)..=Duration::from_millis(400);
    const LONG: Duration = Duration::from_millis(1500);

    fn after(waited: Duration) -> Turn {
        Turn {
            waited,
            ..Turn::first(None)
        }
    }

    #[test]
    fn an_owner_that_holds_nothing_waits_in_short_slices_for_ever() {
        for waited in [Duration::ZERO, 2 * D, 1000 * D] {
            assert!(SHORT.contains(&length(after(waited), D, false)));
        }
    }

    #[test]
    fn slices_are_jittered() {
        let lengths: std::collections::HashSet<_> =
            (0..20).map(|_| length(after(D), D, false)).collect();
        assert!(lengths.len() > 1);
    }

    #[test]
    fn a_session_that_may_be_in_a_cycle_lets_the_server_look_for_it() {
        assert_eq!(length(after(2 * D), D, true), LONG);
        assert_eq!(length(after(100 * D), 10 * D, true), 10 * LONG);
        assert_eq!(length(after(100 * D), 29 * D, true), Turn::LONGEST);
    }

    #[test]
    fn only_the_caller_s_own_patience_ends_a_slice_sooner_that_finds_a_deadlock() {
        let turn = Turn {
            patience: Some(D / 2),
            ..after(2 * D)
        };
        assert_eq!(length(turn, D, true), LONG);
        assert_eq!(length(Turn::first(Some(D / 4)), D, true), D / 4);
    }

    #[test]
    fn two_that_read_and_want_to_write_may_be_in_a_cycle() {
        let turn = Turn {
            behind_readers: 1,
            patience: Some(D / 2),
            ..after(2 * D)
        };
        assert_eq!(length(turn, D, true), LONG);
    }

    #[test]
    fn only_a_session_that_holds_locks_for_long_is_suspicious() {
        let holding = Turn {
            holding: true,
            ..after(D + LEAST)
        };
        assert!(is_suspicious(holding, D));
        let waited = D;
        assert!(!is_suspicious(Turn { waited, ..holding }, D));
        let wanted = true;
        assert!(!is_suspicious(Turn { wanted, ..holding }, D));
        assert!(!is_suspicious(after(100 * D), D));
    }

    #[test]
    fn a_writer_behind_readers_doubles_its_slices() {
        let behind = |turns| Turn {
            behind_readers: turns,
            ..after(D)
        };
        let doubled = length(behind(3), D, false);
        assert!((8 * *SHORT.start()..=8 * *SHORT.end()).contains(&doubled));
        for turns in [10, 40, u32::MAX] {
            assert_eq!(length(behind(turns), D, false), WRITER_CAP);
        }
        let wanted = Turn {
            wanted: true,
            ..behind(10)
        };
        assert_eq!(length(wanted, D, false), LONG);
    }

    #[test]
    fn no_slice_is_longer_than_patience_and_none_is_zero() {
        let patience = |patience| Turn::first(Some(patience));
        let left = Duration::from_millis(7);
        assert_eq!(length(patience(left), D, false), left);
        assert_eq!(length(patience(Duration::from_micros(3)), D, false), LEAST);
        assert_eq!(length(Turn::first(None), LEAST, false), LEAST);
    }

    #[test]
    fn a_patient_server_does_not_make_slices_long() {
        let day = Duration::from_secs(24 * 60 * 60);
        assert!(length(Turn::first(None), day, false) <= SHORT_CAP);
    }
}
