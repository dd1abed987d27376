mod random;

use advisory_core::LockMode::{Exclusive, Shared};

use super::*;

const A: SessionId = SessionId::new(0, 1);
const B: SessionId = SessionId::new(0, 2);
const C: SessionId = SessionId::new(0, 3);
const D: SessionId = SessionId::new(0, 4);

/// An exclusive claim.
fn x(key: i64) -> Claim {
    Claim {
        key: key.into(),
        mode: Exclusive,
    }
}

/// A shared claim.
fn s(key: i64) -> Claim {
    Claim {
        key: key.into(),
        mode: Shared,
    }
}

/// What a test does most: takes what must be free, and waits for what must not be.
impl LockSpace {
    fn take(&mut self, session: SessionId, claim: Claim) {
        assert!(self.try_lock(session, claim), "{claim:?} is free");
    }

    fn queue(&mut self, session: SessionId, claim: Claim) {
        assert_eq!(self.wait(session, claim, None), Ok(Wait::Queued));
    }

    fn held_by(&self, session: SessionId) -> Vec<Claim> {
        let held = self.held().filter(|(holder, _)| *holder == session);
        held.map(|(_, claim)| claim).collect()
    }

    fn queue_of(&self, key: i64) -> Vec<SessionId> {
        self.waiters(key.into())
            .map(|(session, _)| session)
            .collect()
    }

    fn assert_forgotten(&self) {
        assert!(self.entries.is_empty(), "{:?}", self.entries);
        assert!(self.held.is_empty(), "{:?}", self.held);
        assert!(self.waiting.is_empty(), "{:?}", self.waiting);
    }
}

mod counting {
    use super::*;

    #[test]
    fn a_claim_is_free_after_as_many_unlocks_as_locks() {
        let mut space = LockSpace::default();
        space.take(A, x(1));
        space.take(A, x(1));
        assert_eq!(space.wait(A, x(1), None), Ok(Wait::Granted));

        assert!(space.unlock(A, x(1)));
        assert!(space.unlock(A, x(1)));
        assert!(!space.try_lock(B, x(1)));
        assert!(space.unlock(A, x(1)));
        space.take(B, x(1));
    }

    #[test]
    fn modes_are_counted_apart() {
        let mut space = LockSpace::default();
        space.take(A, x(1));
        space.take(A, s(1));
        assert_eq!(space.held_by(A), [x(1), s(1)]);

        assert!(space.unlock(A, x(1)));
        assert!(!space.unlock(A, x(1)));
        assert_eq!(space.held_by(A), [s(1)]);
        space.take(B, s(1));
    }

    #[test]
    fn what_is_not_held_cannot_be_unlocked() {
        let mut space = LockSpace::default();
        assert!(!space.unlock(A, x(1)));
        space.take(A, x(1));
        assert!(!space.unlock(B, x(1)));
        assert!(!space.unlock(A, s(1)));
        assert_eq!(space.held_by(A), [x(1)]);
    }

    #[test]
    fn the_two_key_spaces_are_apart() {
        let mut space = LockSpace::default();
        let pair = Claim {
            key: (1, 1).into(),
            mode: Exclusive,
        };
        space.take(A, x(4_294_967_297));
        space.take(B, pair);
    }

    #[test]
    fn nothing_is_kept_of_what_is_over() {
        let mut space = LockSpace::default();
        space.take(A, x(1));
        space.take(A, s(1));
        space.queue(B, x(1));
        space.leave(B);
        space.unlock(A, x(1));
        space.unlock(A, s(1));
        space.assert_forgotten();
    }
}

mod trying {
    use super::*;

    #[test]
    fn readers_share_and_writers_do_not() {
        let mut space = LockSpace::default();
        space.take(A, s(1));
        space.take(B, s(1));
        assert!(!space.try_lock(C, x(1)));
        assert!(!space.try_lock(A, x(1)));
        space.end(B);
        space.take(A, x(1));
        assert!(!space.try_lock(C, s(1)));
    }

    #[test]
    fn a_try_misses_behind_a_waiting_writer() {
        let mut space = LockSpace::default();
        space.take(A, s(1));
        space.queue(B, x(1));
        assert!(!space.try_lock(C, s(1)));
    }

    #[test]
    fn what_is_held_is_taken_again_whoever_waits() {
        let mut space = LockSpace::default();
        space.take(A, s(1));
        space.queue(B, x(1));
        space.take(A, s(1));
    }

    #[test]
    fn a_holder_misses_the_other_mode_while_a_writer_waits_but_would_not_have_to_wait() {
        let mut space = LockSpace::default();
        space.take(A, x(1));
        space.queue(B, x(1));
        assert!(!space.try_lock(A, s(1)));
        assert_eq!(space.wait(A, s(1), None), Ok(Wait::Granted));
        assert_eq!(space.held_by(A), [x(1), s(1)]);
    }
}

mod queueing {
    use super::*;

    #[test]
    fn grants_are_first_come_first_served() {
        let mut space = LockSpace::default();
        space.take(A, x(1));
        for session in [D, B, C] {
            space.queue(session, x(1));
        }
        for (holder, next) in [(A, D), (D, B), (B, C)] {
            space.unlock(holder, x(1));
            assert_eq!(space.take_granted(), [next]);
            assert_eq!(space.held_by(next), [x(1)]);
        }
        assert!(space.queue_of(1).is_empty());
    }

    #[test]
    fn readers_queue_behind_a_writer_and_get_in_together() {
        let mut space = LockSpace::default();
        space.take(A, s(1));
        space.queue(B, x(1));
        space.queue(C, s(1));
        space.queue(D, s(1));

        space.unlock(A, s(1));
        assert_eq!(space.take_granted(), [B]);
        space.unlock(B, x(1));
        assert_eq!(space.take_granted(), [C, D]);
    }

    #[test]
    fn a_writer_that_gives_up_lets_the_readers_in() {
        let mut space = LockSpace::default();
        space.take(A, s(1));
        space.queue(B, x(1));
        space.queue(C, s(1));
        assert!(space.leave(B).is_some());
        assert_eq!(space.take_granted(), [C]);
        assert_eq!(space.leave(C), None);
    }

    #[test]
    fn a_holder_goes_in_front_of_those_who_wait_for_it() {
        let mut space = LockSpace::default();
        space.take(A, s(1));
        space.take(B, s(1));
        space.queue(C, x(1));
        space.queue(A, x(1));
        assert_eq!(space.queue_of(1), [A, C]);

        space.unlock(B, s(1));
        assert_eq!(space.held_by(A), [x(1), s(1)]);
    }

    #[test]
    fn a_place_that_was_left_is_taken_again() {
        let mut space = LockSpace::default();
        space.take(A, x(1));
        for session in [B, C, D] {
            space.queue(session, x(1));
        }
        let left = space.leave(C).expect("it waits");
        assert_eq!(space.queue_of(1), [B, D]);
        assert_eq!(space.wait(C, x(1), Some(left.place)), Ok(Wait::Queued));
        assert_eq!(space.queue_of(1), [B, C, D]);
    }

    #[test]
    fn a_place_in_front_of_others_is_theirs_to_return_to() {
        let mut space = LockSpace::default();
        space.take(A, s(1));
        space.take(B, s(1));
        space.queue(C, x(1));
        space.queue(A, x(1));

        let left = space.leave(C).expect("it waits");
        space.wait(C, x(1), Some(left.place)).expect("no deadlock");
        assert_eq!(space.queue_of(1), [A, C]);
    }

    #[test]
    fn a_place_is_none_in_front_of_those_who_hold() {
        let mut space = LockSpace::default();
        space.take(A, s(1));
        space.queue(B, x(1));
        let left = space.leave(B).expect("it waits");

        space.take(C, s(1));
        space.queue(C, x(1));
        space.wait(B, x(1), Some(left.place)).expect("no deadlock");
        assert_eq!(space.queue_of(1), [C, B]);
        space.unlock(A, s(1));
        assert_eq!(space.held_by(C), [x(1), s(1)]);
    }

    #[test]
    fn the_end_of_a_session_frees_all_it_held_and_its_place() {
        let mut space = LockSpace::default();
        space.take(A, x(1));
        space.take(A, x(1));
        space.take(A, s(2));
        space.take(B, x(3));
        space.queue(A, x(3));
        space.queue(C, x(1));
        space.queue(D, x(2));

        space.end(A);
        assert_eq!(space.take_granted(), [C, D]);
        assert!(space.queue_of(3).is_empty());
        assert!(space.held_by(A).is_empty());
        for session in [B, C, D] {
            space.end(session);
        }
        space.assert_forgotten();
    }
}

mod behind_readers {
    use super::*;

    fn leaves_behind_readers(space: &mut LockSpace, session: SessionId) -> bool {
        space.leave(session).expect("it waits").behind_readers
    }

    #[test]
    fn a_writer_behind_readers_is() {
        let mut space = LockSpace::default();
        space.take(A, s(1));
        space.take(B, s(1));
        space.queue(C, x(1));
        assert!(leaves_behind_readers(&mut space, C));
    }

    #[test]
    fn a_reader_that_wants_to_write_is_if_there_are_others() {
        let mut space = LockSpace::default();
        space.take(A, s(1));
        space.take(B, s(1));
        space.queue(A, x(1));
        assert!(leaves_behind_readers(&mut space, A));
    }

    #[test]
    fn behind_a_writer_nobody_is() {
        let mut space = LockSpace::default();
        space.take(A, x(1));
        space.queue(B, x(1));
        space.queue(C, s(1));
        assert!(!leaves_behind_readers(&mut space, C));
        assert!(!leaves_behind_readers(&mut space, B));
    }

    #[test]
    fn behind_another_waiting_writer_nobody_is() {
        let mut space = LockSpace::default();
        space.take(A, s(1));
        space.queue(B, x(1));
        space.queue(C, x(1));
        assert!(!leaves_behind_readers(&mut space, C));
    }
}

mod deadlock {
    use super::*;

    #[test]
    fn two_sessions_that_want_what_the_other_has() {
        let mut space = LockSpace::default();
        space.take(A, x(1));
        space.take(B, x(2));
        space.queue(A, x(2));

        let deadlock = space.wait(B, x(1), None).expect_err("a cycle");
        assert_eq!(
            deadlock.to_string(),
            "session 2 waits for key 1 (exclusive), held by session 1; \
             session 1 waits for key 2 (exclusive), held by session 2"
        );
        // The victim keeps what it has, and is out of the queue.
        assert_eq!(space.held_by(B), [x(2)]);
        assert!(space.queue_of(1).is_empty());
        assert!(!space.is_waiting(B));

        space.unlock(B, x(2));
        assert_eq!(space.held_by(A), [x(1), x(2)]);
    }

    #[test]
    fn a_ring_of_three() {
        let mut space = LockSpace::default();
        space.take(A, x(1));
        space.take(B, x(2));
        space.take(C, s(3));
        space.queue(A, s(2));
        space.queue(B, x(3));
        assert!(space.wait(C, s(1), None).is_err());
    }

    #[test]
    fn two_readers_that_both_want_to_write() {
        let mut space = LockSpace::default();
        space.take(A, s(1));
        space.take(B, s(1));
        space.queue(A, x(1));
        assert!(space.wait(B, x(1), None).is_err());
        assert_eq!(space.queue_of(1), [A]);
    }

    #[test]
    fn a_chain_is_none() {
        let mut space = LockSpace::default();
        space.take(A, x(1));
        space.take(B, x(2));
        space.take(C, x(3));
        space.queue(B, x(1));
        space.queue(C, x(2));
        space.queue(D, x(3));
    }

    /// A reader that waits behind a writer only because the writer came first need not.
    #[test]
    fn a_cycle_by_order_of_arrival_is_undone() {
        let mut space = LockSpace::default();
        space.take(A, s(1));
        space.take(C, x(2));
        space.queue(B, x(1));
        space.queue(A, x(2));
        assert_eq!(space.wait(C, s(1), None), Ok(Wait::Granted));
        assert_eq!(space.held_by(C), [s(1), x(2)]);
        assert_eq!(space.queue_of(1), [B]);
    }

    #[test]
    fn a_cycle_by_order_of_arrival_is_undone_whoever_closes_it() {
        let mut space = LockSpace::default();
        space.take(A, s(1));
        space.take(C, x(2));
        space.queue(B, x(1));
        space.queue(C, s(1));
        space.queue(A, x(2));
        assert_eq!(space.take_granted(), [C]);
        assert_eq!(space.held_by(C), [s(1), x(2)]);
        assert_eq!(space.queue_of(2), [A]);
    }
}

/// Long queues must not cost the square of their length.
#[test]
fn a_long_queue_is_no_burden() {
    let mut space = LockSpace::default();
    let session = |number| SessionId::new(0, number);
    space.take(session(0), s(0));
    space.take(session(1), x(-1));
    for number in 2..2_000 {
        space.take(session(number), x(number));
        space.queue(session(number), x(0));
    }
    space.queue(session(0), x(-1));
    // Only by order of arrival does this reader wait for 1,998 writers, and so for the first one.
    assert_eq!(space.wait(session(1), s(0), None), Ok(Wait::Granted));
}
