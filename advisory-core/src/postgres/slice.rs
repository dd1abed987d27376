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
/// Nor is one that is meant for the server's deadlock check.
const LONG_CAP: Duration = Duration::from_secs(5);
/// Nor one that is meant to outlast readers.
const WRITER_CAP: Duration = Duration::from_secs(30);
/// The server counts in milliseconds, and reads zero as no limit.
const LEAST: Duration = Duration::from_millis(1);

/// How long to wait this time, on a server with this `deadlock_timeout`.
///
/// - A slice is normally at most 0.4 D, so that an index build behind it survives.
/// - A session that holds other locks may be part of a cycle, which the server looks for once a
///   wait has lasted D. So if the wait has gone on for longer than that, it gets 1.5 D: longer
///   than D, so that the check happens; shorter than 2 D, so that this session's check comes
///   before that of an index build it may be in the way of. Not while somebody wants the session.
/// - Each end of a slice lets queued readers in, so a writer behind them doubles its slices until
///   it outlasts those that are there. While somebody wants the session it stops at 1.5 D.
pub(super) fn length(turn: Turn, deadlock_timeout: Duration) -> Duration {
    let long = deadlock_timeout.mul_f64(1.5).min(LONG_CAP);
    let slice = if turn.behind_readers > 0 {
        let cap = if turn.wanted { long } else { WRITER_CAP };
        short(deadlock_timeout)
            .saturating_mul(2_u32.saturating_pow(turn.behind_readers))
            .min(cap)
    } else if turn.holding && !turn.wanted && turn.waited > deadlock_timeout {
        long
    } else {
        short(deadlock_timeout)
    };
    slice.min(turn.patience.unwrap_or(slice)).max(LEAST)
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
            assert!(SHORT.contains(&length(after(waited), D)));
        }
    }

    #[test]
    fn slices_are_jittered() {
        let lengths: std::collections::HashSet<_> = (0..20).map(|_| length(after(D), D)).collect();
        assert!(lengths.len() > 1);
    }

    #[test]
    fn an_owner_that_holds_locks_lets_the_server_look_for_cycles_after_a_while() {
        let holding = |waited| Turn {
            holding: true,
            ..after(waited)
        };
        assert!(SHORT.contains(&length(holding(Duration::ZERO), D)));
        assert!(SHORT.contains(&length(holding(D), D)));
        assert_eq!(length(holding(D + LEAST), D), LONG);
        assert_eq!(length(holding(100 * D), 10 * D), LONG_CAP);
    }

    #[test]
    fn a_wanted_session_stays_at_short_slices() {
        let turn = Turn {
            holding: true,
            wanted: true,
            ..after(2 * D)
        };
        assert!(SHORT.contains(&length(turn, D)));
    }

    #[test]
    fn a_writer_behind_readers_doubles_its_slices() {
        let behind = |turns| Turn {
            behind_readers: turns,
            ..after(D)
        };
        let doubled = length(behind(3), D);
        assert!((8 * *SHORT.start()..=8 * *SHORT.end()).contains(&doubled));
        for turns in [10, 40, u32::MAX] {
            assert_eq!(length(behind(turns), D), WRITER_CAP);
        }
        let wanted = Turn {
            wanted: true,
            ..behind(10)
        };
        assert_eq!(length(wanted, D), LONG);
    }

    #[test]
    fn no_slice_is_longer_than_patience_and_none_is_zero() {
        let patience = |patience| Turn::first(Some(patience));
        let left = Duration::from_millis(7);
        assert_eq!(length(patience(left), D), left);
        assert_eq!(length(patience(Duration::from_micros(3)), D), LEAST);
        assert_eq!(length(Turn::first(None), LEAST), LEAST);
    }

    #[test]
    fn a_patient_server_does_not_make_slices_long() {
        let day = Duration::from_secs(24 * 60 * 60);
        assert!(length(Turn::first(None), day) <= SHORT_CAP);
    }
}
