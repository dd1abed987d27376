//! What the suite is worth: each of these backends does one thing wrong, and a case finds it.

mod broken;
mod faults;
mod memory;

use std::thread;

use advisory_conformance_tests::{run_case, runtime::Threads};
use advisory_core::{
    LockKey, LockMode,
    spi::{Request, Waited},
};
use broken::{Broken, Fault};
use faults::*;

/// Generates a test for each topic of the suite, and one which shows that what its cases find is
/// the mutants' fault.
///
/// A mutant takes as long as its case has patience for it. So they run at the same time.
macro_rules! mutants {
    ($( $topic:ident { $( $case:ident finds { $( $mutant:ident: $fault:expr; )* } )* } )*) => {
        $(
            #[test]
            fn $topic() {
                assert_found(vec![$( $( Mutant {
                    name: stringify!($mutant),
                    broken: Broken::by($fault),
                    case: concat!(stringify!($topic), "::", stringify!($case)),
                } ),* ),*]);
            }
        )*

        #[test]
        fn one_without_a_fault_passes() {
            for case in [$( $( concat!(stringify!($topic), "::", stringify!($case)) ),* ),*] {
                run_case(Broken::by(NoFault), Threads, case);
            }
        }
    };
}

struct Mutant {
    name: &'static str,
    broken: Broken,
    /// What is to find it.
    case: &'static str,
}

mutants! {
    spi_backends {
        open_nothing_once_closed finds {
            opens_when_closed: OpensWhenClosed;
        }
        may_be_closed_twice finds {
            closes_once: ClosesOnce::default();
        }
        leave_no_session_behind finds {
            recycles_nothing: RecyclesNothing;
        }
        lend_as_many_sessions_as_they_have finds {
            opens_as_many_as_are_asked_for: OpensAsManyAsAreAskedFor;
        }
        lose_no_session_to_who_stops_waiting finds {
            opens_for_those_who_are_gone: OpensForThoseWhoAreGone;
        }
    }
    spi_sessions {
        are_known_by_one_id finds {
            has_no_id: Id(|_| None);
            has_the_id_of_another: Id(other);
            has_a_new_id_each_time: Id(new);
        }
        have_ids_of_their_own finds {
            has_the_id_of_all: Id(same);
        }
        see_everybody_who_holds_the_key finds {
            hides_readers: Shows(|holder, _| holder.mode == LockMode::Exclusive);
            sees_itself_only: Shows(|holder, sound| Some(holder.session) == sound.session.id());
            does_not_see_itself: Shows(|holder, sound| Some(holder.session) != sound.session.id());
        }
        do_not_take_a_waiter_for_a_holder finds {
            shows_waiters: ShowsWaiters;
        }
        begin_with_nothing finds {
            takes_twice: TakesTwice;
            recycles_with_a_lock: RecyclesWithALock;
        }
        free_all_they_hold_when_dropped finds {
            outlives_its_drop: OutlivesItsDrop;
        }
    }
    spi_batches {
        are_answered_in_their_order finds {
            answers_backwards: Answers(|answers| answers.into_iter().rev().collect());
            answers_locks_first: Halves(|request| matches!(request, Request::TryLock(_)));
            answers_pairs_first: Halves(|request| matches!(request.claim().key, LockKey::Pair(..)));
            answers_readers_first: Halves(|request| request.claim().mode == LockMode::Shared);
            locks_first: LocksFirst;
        }
        have_an_answer_for_each_request finds {
            answers_the_first: Answers(|answers| answers.into_iter().take(1).collect());
            answers_once_more: Answers(|answers| answers.into_iter().chain([true]).collect());
        }
        may_be_empty finds {
            answers_nothing: Answers(|answers| if answers.is_empty() { vec![true] } else { answers });
            refuses_empty_batches: RefusesEmptyBatches;
        }
        take_what_they_say finds {
            answers_hits_only: Answers(|answers| answers.into_iter().filter(|hit| *hit).collect());
            stops_at_a_miss: StopsAtAMiss;
        }
        unlock_only_what_is_held finds {
            unlocks_anything: UnlocksAnything;
        }
        unlock_in_the_mode_that_is_held finds {
            unlocks_in_any_mode: UnlocksInAnyMode;
        }
    }
    spi_waits {
        end_with_their_patience finds {
            has_patience: HasPatience;
        }
        end_even_if_patience_does_not finds {
            waits_for_ever: WaitsForEver;
        }
        end_with_a_lock_that_is_held finds {
            gives_back_what_was_granted: Granted(Request::Unlock);
            takes_again_what_was_granted: Granted(Request::TryLock);
        }
        end_at_once_if_the_lock_is_free finds {
            waits_for_a_release: WaitsForARelease;
            denies_a_grant: Ends(|_| Waited::TurnOver { behind_readers: false });
        }
        in_vain_leave_nothing finds {
            claims_a_grant: Ends(|_| Waited::Granted);
            stays_in_the_queue: StaysInTheQueue;
        }
        tell_whether_readers_are_in_the_way finds {
            is_always_behind_readers: Ends(|waited| behind(true, waited));
            is_never_behind_readers: Ends(|waited| behind(false, waited));
        }
        go_with_their_session finds {
            waits_for_those_who_are_gone: WaitsForThoseWhoAreGone;
        }
        in_a_cycle_of_three_have_one_victim finds {
            finds_no_deadlock: FindsNoDeadlock;
            gives_up_everything: GivesUpEverything;
            makes_many_victims: ManyVictims::default();
        }
    }
    spi_losses {
        are_for_good finds {
            is_never_lost: NeverLost;
            reconnects: Reconnects;
            probes_nothing: ProbesNothing;
        }
        are_noticed_as_promised finds {
            notices_nothing: NoticesNothing::default();
        }
        end_a_wait finds {
            takes_a_loss_for_a_deadlock: TakesALossForADeadlock;
        }
        are_not_lent_again finds {
            lends_the_dead: LendsTheDead::default();
        }
    }
    spi_tokens {
        grow_on_a_session finds {
            tokens_stand_still: StandStill;
        }
        grow_from_session_to_session finds {
            tokens_grow_by_session: GrowBySession::default();
        }
    }
}

#[derive(Debug)]
struct NoFault;

impl Fault for NoFault {}

fn assert_found(mutants: Vec<Mutant>) {
    let runs = mutants.into_iter().map(|mutant| {
        let Mutant { name, broken, case } = mutant;
        (
            name,
            case,
            thread::spawn(|| run_case(broken, Threads, case)),
        )
    });
    let mut missed = Vec::new();
    for (name, case, run) in runs.collect::<Vec<_>>() {
        if run.join().is_ok() {
            missed.push((name, case));
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
