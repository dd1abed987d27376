use std::time::{Duration, Instant};

use advisory_core::{
    Error,
    spi::{Claim, Turn, Waited},
};
use futures::future::select_all;

use crate::{
    Env,
    spi::{KEYS, Session, exclusive, give_back, id_of, shared, take, try_lock, unlock, wait},
    sync::{DEADLINE, pause, within},
};

/// Shorter than what any backend would choose for a turn.
const PATIENCE: Duration = Duration::from_millis(30);

/// Longer than that, by what an answer may take.
const AT_MOST: Duration = Duration::from_millis(250);

/// What an answer may take at most.
const GRACE: Duration = Duration::from_secs(5);

/// A busy machine may be late, but not every time.
const ATTEMPTS: usize = 10;

pub(super) async fn end_with_their_patience(env: &Env) {
    let (mut session, mut holder) = (env.session().await, env.session().await);
    take(&mut holder, &[shared(1)]).await;
    assert!(!try_lock(&mut session, exclusive(1)).await.unwrap());
    // One that has often waited behind readers would have a long turn.
    for behind_readers in [0, 16] {
        let mut turn = Turn::first(Some(PATIENCE));
        turn.behind_readers = behind_readers;
        let mut quickest = Duration::MAX;
        for _ in 0..ATTEMPTS {
            let started = Instant::now();
            let over = within(GRACE, session.wait(exclusive(1), turn)).await;
            let over = over.expect("its patience is short").unwrap();
            assert!(matches!(over, Waited::TurnOver { .. }));
            quickest = quickest.min(started.elapsed());
            if quickest <= AT_MOST {
                break;
            }
        }
        assert!(quickest <= AT_MOST, "{quickest:?} is not {PATIENCE:?}");
    }
}

pub(super) async fn end_even_if_patience_does_not(env: &Env) {
    let (mut session, mut holder) = (env.session().await, env.session().await);
    take(&mut holder, &[exclusive(1)]).await;
    assert!(!try_lock(&mut session, exclusive(1)).await.unwrap());
    let waiting = session.wait(exclusive(1), Turn::first(None));
    let over = within(Turn::LONGEST + GRACE, waiting).await;
    let over = over.expect("no turn is longer than that").unwrap();
    assert!(matches!(over, Waited::TurnOver { .. }));
}

pub(super) async fn end_with_a_lock_that_is_held(env: &Env) {
    let (mut session, mut holder) = (env.session().await, env.session().await);
    for claim in [exclusive(1), shared(1), exclusive((7, 1)), shared((7, 1))] {
        let theirs = exclusive(claim.key);
        take(&mut holder, &[theirs]).await;
        let waiting = env.spawn(async move {
            assert!(!try_lock(&mut session, claim).await.unwrap());
            wait(&mut session, claim, false).await.unwrap();
            session
        });
        env.until_waiters(claim.key, 1).await;
        give_back(&mut holder, &[theirs]).await;
        session = waiting.await;

        let id = id_of(&session).number();
        assert_eq!(env.holders(claim.key).await, [(id, claim.mode)]);
        assert!(!try_lock(&mut holder, theirs).await.unwrap());
        // Once, however often it was asked for.
        give_back(&mut session, &[claim]).await;
        assert_eq!(env.held().await, []);
    }
}

/// Between the miss and the wait the holder may go.
pub(super) async fn end_at_once_if_the_lock_is_free(env: &Env) {
    let (mut session, mut holder) = (env.session().await, env.session().await);
    for claim in [exclusive(1), shared(1), exclusive((7, 1)), shared((7, 1))] {
        let theirs = exclusive(claim.key);
        take(&mut holder, &[theirs]).await;
        assert!(!try_lock(&mut session, claim).await.unwrap());
        give_back(&mut holder, &[theirs]).await;

        let turn = Turn::first(Some(DEADLINE));
        let waited = session.wait(claim, turn).await.unwrap();
        assert_eq!(waited, Waited::Granted);
        let id = id_of(&session).number();
        assert_eq!(env.holders(claim.key).await, [(id, claim.mode)]);
        give_back(&mut session, &[claim]).await;
    }
    assert_eq!(env.held().await, []);
}

pub(super) async fn in_vain_leave_nothing(env: &Env) {
    env.expect_vain_unlocks();
    let (mut session, mut holder) = (env.session().await, env.session().await);
    take(&mut session, &[exclusive(5)]).await;
    for (theirs, claim) in [
        (exclusive(1), exclusive(1)),
        (exclusive(1), shared(1)),
        (shared(1), exclusive(1)),
        (exclusive((7, 1)), exclusive((7, 1))),
    ] {
        take(&mut holder, &[theirs]).await;
        for holding in [false, true] {
            turn_over(&mut session, claim, holding).await;
            assert_eq!(env.waiters(claim.key).await, 0);
            assert_eq!(env.held().await.len(), 2);
        }
        // Nor does it come to anything later.
        give_back(&mut holder, &[theirs]).await;
        pause(PATIENCE).await;
        assert_eq!(env.holders(claim.key).await, []);
        assert!(!unlock(&mut session, claim).await.unwrap());
    }
    give_back(&mut session, &[exclusive(5)]).await;
}

/// A writer that only readers keep waiting needs longer turns; see `Waited::TurnOver`.
pub(super) async fn tell_whether_readers_are_in_the_way(env: &Env) {
    let (mut session, mut holder) = (env.session().await, env.session().await);
    let mut other = env.session().await;
    for key in KEYS {
        let [x, s] = [exclusive(key), shared(key)];
        take(&mut holder, &[s]).await;
        assert!(turn_over(&mut session, x, false).await, "one reader");
        take(&mut other, &[s]).await;
        assert!(turn_over(&mut session, x, false).await, "two readers");
        give_back(&mut other, &[s]).await;

        take(&mut holder, &[x]).await;
        assert!(!turn_over(&mut session, x, false).await, "reads and writes");
        give_back(&mut holder, &[s]).await;
        assert!(!turn_over(&mut session, x, false).await, "a writer");
        assert!(!turn_over(&mut session, s, false).await, "a reader waits");
        give_back(&mut holder, &[x]).await;
    }
}

/// A session that is dropped in the middle of a wait is out of the queue by the turn's end.
pub(super) async fn go_with_their_session(env: &Env) {
    const TURN: Duration = Duration::from_secs(1);

    let (mut session, mut holder) = (env.session().await, env.session().await);
    take(&mut session, &[exclusive(5)]).await;
    take(&mut holder, &[exclusive(1)]).await;
    let waiting = env.spawn(async move {
        assert!(!try_lock(&mut session, exclusive(1)).await.unwrap());
        loop {
            let waited = session.wait(exclusive(1), Turn::first(Some(TURN))).await;
            assert_ne!(waited.unwrap(), Waited::Granted);
        }
    });
    env.until_waiters(1.into(), 1).await;
    let dropped = Instant::now();
    waiting.cancel().await;
    env.until_waiters(1.into(), 0).await;
    env.until_free(5.into()).await;
    let took = dropped.elapsed();
    assert!(took <= 3 * TURN, "{took:?} is longer than a turn");

    give_back(&mut holder, &[exclusive(1)]).await;
    pause(PATIENCE).await;
    assert_eq!(env.held().await, []);
}

pub(super) async fn in_a_cycle_of_three_have_one_victim(env: &Env) {
    env.expect_vain_unlocks();
    let mut waits = Vec::new();
    let mut sessions = Vec::new();
    for key in 0..3 {
        let mut session = env.session().await;
        take(&mut session, &[exclusive(key)]).await;
        sessions.push(session);
    }
    for (key, mut session) in (0..).zip(sessions) {
        let (own, next) = (exclusive(key), exclusive((key + 1) % 3));
        waits.push(env.spawn(async move {
            assert!(!try_lock(&mut session, next).await.unwrap());
            let waited = wait(&mut session, next, true).await;
            if waited.is_ok() {
                give_back(&mut session, &[own, next]).await;
            }
            (session, own, next, waited)
        }));
    }
    let ((mut victim, own, next, waited), _, others) = select_all(waits).await;
    assert!(matches!(waited, Err(Error::Deadlock { .. })), "{waited:?}");

    // The others wait on for what it has, and are told nothing, also after their turns.
    pause(10 * PATIENCE).await;
    assert!(!victim.is_lost());
    let id = id_of(&victim).number();
    assert_eq!(env.holder(own.key).await, id);
    assert_ne!(env.holder(next.key).await, id);
    assert_eq!(env.held().await.len(), 3);
    assert!(!unlock(&mut victim, next).await.unwrap());

    give_back(&mut victim, &[own]).await;
    for other in others {
        let (.., waited) = other.await;
        waited.unwrap();
    }
    assert_eq!(env.held().await, []);
}

/// Waits for a turn that ends without the claim, after a try that missed; whether only readers were
/// in its way.
async fn turn_over(session: &mut Session, claim: Claim, holding: bool) -> bool {
    assert!(!try_lock(session, claim).await.unwrap());
    let mut turn = Turn::first(Some(PATIENCE));
    turn.holding = holding;
    match session.wait(claim, turn).await.unwrap() {
        Waited::TurnOver { behind_readers } => behind_readers,
        Waited::Granted => panic!("{claim:?} was not free"),
    }
}
