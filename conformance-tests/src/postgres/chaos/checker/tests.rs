use super::{
    super::{
        clock::Span,
        journal::{Event, Outcome, What},
    },
    *,
};

const BOUNDS: Bounds = Bounds {
    closed: Duration::from_secs(1),
    silent: Duration::from_secs(2),
};

const KEY: u8 = 0;

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn span(from: f64, until: f64) -> Span {
    Span {
        from: seconds(from),
        until: seconds(until),
    }
}

impl Journal {
    fn say(&mut self, acquisition: AcquisitionId, what: What) {
        self.hear(Event { acquisition, what });
    }

    fn enters(&mut self, id: AcquisitionId, key: u8, within: Option<AcquisitionId>, at: f64) {
        self.say(id, What::Asks);
        let at = seconds(at);
        self.say(id, What::Enters { key, within, at });
    }

    fn leaves(&mut self, id: AcquisitionId, at: f64, outcome: Outcome) {
        self.say(id, What::Leaves { at: seconds(at) });
        self.say(id, What::Ends { outcome });
    }

    fn fenced(&mut self, id: AcquisitionId, token: i64) {
        self.say(id, What::Fenced { token });
    }

    /// One section from beginning to end.
    fn visit(&mut self, id: AcquisitionId, from: f64, until: f64, outcome: Outcome) {
        self.enters(id, KEY, None, from);
        self.leaves(id, until, outcome);
    }
}

/// A worker with one section of the key.
fn worker(from: f64, until: f64, outcome: Outcome) -> Journal {
    let mut journal = Journal::default();
    journal.visit(1, from, until, outcome);
    journal
}

/// The same with a token.
fn fenced(from: f64, until: f64, token: i64) -> Journal {
    let mut journal = worker(from, until, Outcome::Held);
    journal.fenced(1, token);
    journal
}

#[track_caller]
fn assert_clean(history: &[Journal]) -> Findings {
    let findings = check(history, BOUNDS);
    assert!(findings.violations.is_empty(), "{findings:#?}");
    findings
}

#[track_caller]
fn violation(history: &[Journal]) -> Violation {
    let findings = check(history, BOUNDS);
    let [violation] = &findings.violations[..] else {
        panic!("not one violation: {findings:#?}");
    };
    violation.clone()
}

#[track_caller]
fn assert_overlap(history: &[Journal], expected: f64) {
    match violation(history) {
        Violation::Overlap { lasted, .. } => assert_eq!(lasted, seconds(expected)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn sections_one_after_the_other_are_fine() {
    let mut one = worker(0.0, 1.0, Outcome::Held);
    one.visit(2, 2.0, 3.0, Outcome::Held);
    let findings = assert_clean(&[one, worker(1.0, 2.0, Outcome::Held)]);
    assert_eq!(findings.closed, (Duration::ZERO, 0));
}

#[test]
fn sections_of_two_keys_may_overlap() {
    let mut other = Journal::default();
    other.enters(1, KEY + 1, None, 0.0);
    other.leaves(1, 9.0, Outcome::Held);
    assert_clean(&[worker(0.0, 9.0, Outcome::Held), other]);
}

#[test]
fn a_lost_section_may_overlap_up_to_the_bound() {
    let successor = worker(5.0, 9.0, Outcome::Held);
    let findings = assert_clean(&[worker(0.0, 5.9, Outcome::Stopped), successor.clone()]);
    assert_eq!(findings.closed, (seconds(5.9) - seconds(5.0), 1));
    assert_overlap(&[worker(0.0, 6.5, Outcome::Stopped), successor], 1.5);
}

#[test]
fn a_silent_network_has_a_bound_of_its_own() {
    let successor = worker(5.0, 9.0, Outcome::Held);
    let mut silenced = worker(0.0, 6.5, Outcome::Stopped);
    silenced.silent.push(span(4.0, 8.0));
    let findings = assert_clean(&[silenced, successor.clone()]);
    assert_eq!(findings.silent, (seconds(1.5), 1));

    let mut too_late = worker(0.0, 7.5, Outcome::Stopped);
    too_late.silent.push(span(4.0, 8.0));
    assert_overlap(&[too_late, successor.clone()], 2.5);

    let mut another_time = worker(0.0, 6.5, Outcome::Stopped);
    another_time.silent.push(span(7.0, 8.0));
    assert_overlap(&[another_time, successor], 1.5);
}

#[test]
fn two_that_were_held_to_the_end_never_overlap() {
    let history = [
        worker(0.0, 5.25, Outcome::Held),
        worker(5.0, 9.0, Outcome::Held),
    ];
    assert_overlap(&history, 0.25);
}

#[test]
fn tasks_of_one_worker_exclude_each_other() {
    let mut journal = worker(0.0, 5.0, Outcome::Held);
    journal.visit(2, 4.5, 6.0, Outcome::Held);
    assert_overlap(&[journal], 0.5);
}

#[test]
fn every_overlap_is_found_not_only_that_of_neighbours() {
    let mut journal = worker(0.0, 6.5, Outcome::Stopped);
    journal.visit(2, 5.75, 5.8, Outcome::Held);
    journal.visit(3, 6.0, 6.2, Outcome::Held);
    let findings = assert_clean(&[journal.clone()]);
    assert_eq!(findings.closed, (seconds(0.75), 2));

    journal.visit(4, 5.0, 5.5, Outcome::Held);
    assert_overlap(&[journal], 1.5);
}

#[test]
fn who_has_left_again_has_proved_that_the_lock_was_lost() {
    let visitor = worker(5.0, 5.1, Outcome::Held);
    assert_overlap(&[worker(0.0, 8.0, Outcome::Stopped), visitor.clone()], 3.0);
    // The loser may have been stopped between its grant and its section.
    assert_overlap(&[visitor, worker(5.05, 8.0, Outcome::Stopped)], 2.95);

    let [mut earlier, mut later] = [fenced(0.0, 8.0, 7), fenced(5.0, 5.1, 8)];
    for journal in [&mut earlier, &mut later] {
        let outcome = Outcome::Stopped;
        journal.say(1, What::Ends { outcome });
    }
    assert_overlap(&[earlier, later], 3.0);
}

#[test]
fn where_both_may_have_lost_it_what_they_have_in_common_counts() {
    let one = worker(0.0, 8.0, Outcome::Stopped);
    assert_clean(&[one.clone(), worker(5.0, 5.1, Outcome::Lost)]);
    assert_overlap(&[one, worker(5.0, 6.5, Outcome::Lost)], 1.5);
}

#[test]
fn a_stopped_process_does_not_run() {
    let mut stopped = worker(0.0, 8.5, Outcome::Stopped);
    stopped.stopped.push(span(4.0, 8.0));
    let successor = worker(5.0, 9.0, Outcome::Held);
    let findings = assert_clean(&[stopped.clone(), successor.clone()]);
    assert_eq!(findings.closed, (seconds(0.5), 1));

    stopped.stopped = vec![span(4.0, 7.0)];
    assert_overlap(&[stopped.clone(), successor.clone()], 1.5);

    // It is no help that the other did not run.
    stopped.stopped.clear();
    let mut successor = successor;
    successor.stopped.push(span(5.0, 9.0));
    assert_overlap(&[stopped, successor], 3.5);
}

#[test]
fn a_killed_worker_has_left_at_that_moment() {
    let mut killed = Journal::default();
    killed.enters(1, KEY, None, 0.0);
    killed.say(2, What::Asks);
    killed.killed = Some(seconds(5.5));
    let successor = worker(5.0, 9.0, Outcome::Held);
    let findings = assert_clean(&[killed.clone(), successor.clone()]);
    assert_eq!(findings.closed, (seconds(0.5), 1));

    killed.killed = Some(seconds(7.0));
    assert_overlap(&[killed, successor], 2.0);
}

#[test]
fn what_enters_a_key_again_is_within_its_section() {
    let mut journal = Journal::default();
    journal.enters(1, KEY, None, 0.0);
    journal.enters(2, KEY + 1, Some(1), 1.0);
    journal.enters(3, KEY, Some(2), 2.0);
    for (id, token) in [(3, 7), (2, 8), (1, 7)] {
        journal.fenced(id, token);
    }
    for id in [3, 2, 1] {
        journal.leaves(id, 9.0, Outcome::Held);
    }
    assert_clean(&[journal.clone()]);

    // A stranger with the same number is not.
    let mut stranger = Journal::default();
    stranger.enters(1, KEY, None, 8.5);
    stranger.leaves(1, 9.0, Outcome::Held);
    let findings = check(&[journal, stranger], BOUNDS);
    assert!(!findings.violations.is_empty());
}

#[test]
fn tokens_grow_in_the_order_of_the_holders() {
    assert_clean(&[fenced(0.0, 1.0, 7), fenced(1.0, 2.0, 8)]);
    for later in [6, 7] {
        let history = [fenced(1.0, 2.0, later), fenced(0.0, 1.0, 7)];
        assert!(matches!(violation(&history), Violation::TokenOrder { .. }));
    }
}

#[test]
fn a_token_is_compared_with_all_earlier_ones() {
    let between = worker(1.0, 2.0, Outcome::Held);
    let history = [fenced(0.0, 1.0, 7), between, fenced(3.0, 4.0, 6)];
    assert!(matches!(violation(&history), Violation::TokenOrder { .. }));
}

#[test]
fn what_enters_a_key_again_has_the_same_token() {
    let mut journal = Journal::default();
    journal.enters(1, KEY, None, 0.0);
    journal.fenced(1, 7);
    journal.enters(2, KEY, Some(1), 1.0);
    journal.fenced(2, 8);
    journal.leaves(2, 2.0, Outcome::Held);
    journal.leaves(1, 3.0, Outcome::Held);
    assert!(matches!(
        violation(&[journal]),
        Violation::TokenOrder { .. }
    ));
}

#[test]
fn an_acquisition_comes_to_an_end() {
    let mut waits = Journal::default();
    waits.say(1, What::Asks);
    assert!(matches!(
        violation(&[waits]),
        Violation::Unended { id: 1, .. }
    ));

    let mut is_in = Journal::default();
    is_in.enters(1, KEY, None, 0.0);
    is_in.say(
        1,
        What::Ends {
            outcome: Outcome::Held,
        },
    );
    assert!(matches!(
        violation(&[is_in]),
        Violation::Unended { id: 1, .. }
    ));
}
