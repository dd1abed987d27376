use std::sync::Arc;

use futures::executor::block_on;

use super::{
    super::fake::{Fake, failure},
    *,
};
use crate::LockMode;

const PID: i32 = 71;
const A: Claim = exclusive(LockKey::BigInt(1));
const B: Claim = exclusive(LockKey::BigInt(2));

const fn exclusive(key: LockKey) -> Claim {
    let mode = LockMode::Exclusive;
    Claim { key, mode }
}

fn session(fake: &Fake) -> PostgresSession<Fake> {
    let server = Server::for_tests();
    let kept = Kept::ByConnection(Upkeep::new(None, &server));
    PostgresSession::new(fake.clone(), server, kept, Arc::default(), None)
}

/// One that a transaction keeps.
fn pinned(fake: &Fake) -> PostgresSession<Fake> {
    let commit = || Box::pin(async { Err(Error::Closed) }) as _;
    let kept = Kept::ByTransaction(Tokens::new(false, Box::new(commit)));
    PostgresSession::new(
        fake.clone(),
        Server::for_tests(),
        kept,
        Arc::default(),
        None,
    )
}

fn try_row(granted: bool, pid: i32, standby: bool) -> Row {
    vec![
        Value::Bool(granted),
        Value::Int4(pid),
        Value::Bool(standby),
        Value::Null,
    ]
}

fn unlock_row(held: bool) -> Row {
    vec![Value::Bool(held), Value::Int4(PID)]
}

/// As `pg_locks` shows a big key that fits its lower half.
fn held_row(key: i32) -> Row {
    vec![
        Value::Int4(0),
        Value::Int4(key),
        Value::Int4(1),
        Value::Text("ExclusiveLock".to_owned()),
    ]
}

#[test]
fn each_run_of_like_requests_is_one_statement_and_answers_keep_their_order() {
    let pair = exclusive(LockKey::Pair(7, -1));
    let fake = Fake::new()
        .expect(
            "pg_try_advisory_lock(k)",
            Ok(vec![try_row(true, PID, false), try_row(false, PID, false)]),
        )
        .expect("pg_advisory_unlock($1", Ok(vec![unlock_row(true)]))
        .expect(
            "pg_try_advisory_lock($1::pg_catalog.int4, $2",
            Ok(vec![try_row(false, PID, false)]),
        );
    let batch = [
        Request::TryLock(A),
        Request::TryLock(B),
        Request::Unlock(A),
        Request::TryLock(pair),
    ];
    let answers = block_on(session(&fake).submit(&batch)).unwrap();
    assert_eq!(answers, [true, false, true, false]);
    assert_eq!(
        fake.params(),
        ["[Int8Array([1, 2])]", "[Int8(1)]", "[Int4(7), Int4(-1)]"]
    );
}

#[test]
fn what_a_failed_batch_took_is_unlocked_and_nothing_else() {
    let fake = Fake::new()
        .expect("pg_try_advisory_lock(k)", Err(failure("53200")))
        .expect("pg_locks", Ok(vec![held_row(9), held_row(2)]))
        .expect("pg_advisory_unlock($1", Ok(vec![unlock_row(true)]));
    let mut session = session(&fake);
    let batch = [Request::TryLock(A), Request::TryLock(B)];
    let error = block_on(session.submit(&batch)).unwrap_err();
    assert!(matches!(error, Error::LockTableFull { .. }));
    assert!(!session.is_lost() && fake.is_done());
    assert_eq!(fake.params()[2], "[Int8(2)]");
}

#[test]
fn a_session_of_which_nothing_is_known_any_more_is_lost() {
    let fake = Fake::new()
        .expect("pg_advisory_unlock($1", Err(failure("57014")))
        .expect("pg_locks", Err(failure("57014")));
    let mut session = session(&fake);
    block_on(session.submit(&[Request::Unlock(A)])).unwrap_err();
    assert!(session.is_lost());

    // Neither asked again nor given back.
    block_on(session.submit(&[Request::TryLock(A)])).unwrap_err();
    block_on(Box::new(session).recycle());
    assert!(!fake.is_recycled());
}

#[test]
fn a_broken_connection_is_asked_nothing_more() {
    let fake = Fake::new().expect("pg_try_advisory_lock", Err(failure("57P01")));
    let mut session = session(&fake);
    let error = block_on(session.submit(&[Request::TryLock(A)])).unwrap_err();
    assert!(matches!(error, Error::Backend(_)));
    assert!(session.is_lost());
}

#[test]
fn a_lock_that_a_standby_granted_is_given_back() {
    let fake = Fake::new()
        .expect("pg_try_advisory_lock", Ok(vec![try_row(true, PID, true)]))
        .expect("pg_locks", Ok(vec![held_row(1)]))
        .expect("pg_advisory_unlock", Ok(vec![unlock_row(true)]));
    let mut session = session(&fake);
    let error = block_on(session.submit(&[Request::TryLock(A)])).unwrap_err();
    assert!(matches!(error, Error::NotPrimary));
    assert!(!session.is_lost() && fake.is_done());
}

#[test]
fn an_answer_of_another_process_loses_the_session() {
    let fake = Fake::new()
        .expect("pg_try_advisory_lock", Ok(vec![try_row(true, PID, false)]))
        .expect(
            "pg_try_advisory_lock",
            Ok(vec![try_row(true, PID + 1, false)]),
        )
        .expect("pg_locks", Ok(Vec::new()));
    let mut session = session(&fake);
    block_on(session.submit(&[Request::TryLock(A)])).unwrap();
    let id = session.id();
    let error = block_on(session.submit(&[Request::TryLock(B)])).unwrap_err();
    assert!(matches!(error, Error::SessionNotPinned));
    assert!(session.is_lost() && session.id() == id);
}

#[test]
fn a_session_that_is_well_is_given_back() {
    let fake = Fake::new();
    block_on(Box::new(session(&fake)).recycle());
    assert!(fake.is_recycled());
}

#[test]
fn an_end_is_a_reason_to_doubt_the_server_once() {
    let mut session = session(&Fake::new());
    let known = Arc::clone(&session.known);
    known.learn(Server::for_tests(), true);
    session.lost = true;
    assert!(session.is_lost() && known.server().is_none());
    known.learn(Server::for_tests(), true);
    assert!(session.is_lost() && known.server().is_some());
}

/// The role may not use `plpgsql` any more.
#[test]
fn a_wait_that_is_forbidden_is_a_reason_to_doubt_the_server() {
    let fake = Fake::new()
        .expect("DO $advisory$", Err(failure("42501")))
        .expect("pg_locks", Ok(Vec::new()))
        .expect(
            ";\nSELECT pg_catalog.pg_advisory_lock(1)",
            Ok(vec![vec![Value::Text(PID.to_string())]]),
        );
    let mut session = session(&fake);
    let known = Arc::clone(&session.known);
    known.learn(Server::for_tests(), true);
    let turn = Turn::default();
    block_on(session.wait(A, turn)).unwrap_err();
    assert!(!session.is_lost() && known.server().is_none() && known.keeps_sessions());
    let waited = block_on(session.wait(A, turn)).unwrap();
    assert!(matches!(waited, Waited::Granted) && fake.is_done());
}

#[test]
fn a_transaction_ends_with_the_last_lock_that_it_keeps() {
    let fake = Fake::new()
        .expect(
            "pg_try_advisory_lock(k)",
            Ok(vec![try_row(true, PID, false), try_row(true, PID, false)]),
        )
        .expect("pg_advisory_unlock($1", Ok(vec![unlock_row(true)]))
        .expect("pg_advisory_unlock($1", Ok(vec![unlock_row(true)]))
        .expect("COMMIT", Ok(Vec::new()));
    let mut session = pinned(&fake);
    block_on(session.submit(&[Request::TryLock(A), Request::TryLock(B)])).unwrap();
    block_on(session.submit(&[Request::Unlock(A)])).unwrap();
    assert!(session.id().is_some());
    block_on(session.submit(&[Request::Unlock(B)])).unwrap();
    assert!(fake.is_done() && session.id().is_none() && !session.is_lost());
}

/// What it holds is what the server says that it does, and that keeps the transaction.
#[test]
fn a_batch_that_fails_ends_no_transaction_that_keeps_another_lock() {
    let row = Ok(vec![try_row(true, PID, false)]);
    let fake = Fake::new()
        .expect("pg_try_advisory_lock($1", row)
        .expect("pg_try_advisory_lock($1", Err(failure("53200")))
        .expect("pg_locks", Ok(vec![held_row(1)]))
        .expect("pg_advisory_unlock($1", Ok(vec![unlock_row(true)]))
        .expect("COMMIT", Ok(Vec::new()));
    let mut session = pinned(&fake);
    block_on(session.submit(&[Request::TryLock(A)])).unwrap();
    block_on(session.submit(&[Request::TryLock(B)])).unwrap_err();
    assert!(session.id().is_some());
    block_on(session.submit(&[Request::Unlock(A)])).unwrap();
    assert!(fake.is_done() && !session.is_lost());
}

#[test]
fn a_transaction_that_does_not_end_takes_no_answer_with_it() {
    let fake = Fake::new()
        .expect(
            "pg_try_advisory_lock($1",
            Ok(vec![try_row(false, PID, false)]),
        )
        .expect("COMMIT", Err(failure("57P01")));
    let mut session = pinned(&fake);
    let answers = block_on(session.submit(&[Request::TryLock(A)])).unwrap();
    assert_eq!(answers, [false]);
    assert!(session.is_lost());
}
