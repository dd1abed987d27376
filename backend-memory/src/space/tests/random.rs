//! Whatever sessions do, in whatever order, some things are always so.

use super::*;

const SESSIONS: i64 = 6;
const KEYS: i64 = 3;

#[test]
fn the_rules_hold_after_every_step() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..300 {
        let mut space = LockSpace::default();
        for _ in 0..60 {
            step(&mut space, &mut random);
            check_holders(&space);
            check_queues(&space);
            check_cycles(&space);
        }
        for number in 0..SESSIONS {
            space.end(SessionId::new(0, number));
        }
        space.assert_forgotten();
    }
}

fn step(space: &mut LockSpace, random: &mut fastrand::Rng) {
    let session = SessionId::new(0, random.i64(0..SESSIONS));
    let key = random.i64(0..KEYS);
    let claim = if random.bool() { x(key) } else { s(key) };
    match random.u32(0..20) {
        0 => space.end(session),
        1..6 if space.is_waiting(session) => {
            // Often the end of a turn, and the next one.
            let waited = space.waiting.get(&session).copied();
            let place = space.leave(session).map(|left| left.place);
            if let (Some(claim), true) = (waited, random.bool()) {
                _ = space.wait(session, claim, place);
            }
        }
        _ if space.is_waiting(session) => {}
        1..6 => _ = space.try_lock(session, claim),
        6..10 => _ = space.unlock(session, claim),
        _ => _ = space.wait(session, claim, None),
    }
}

/// No two sessions hold what conflicts.
fn check_holders(space: &LockSpace) {
    let held: Vec<_> = space.held().collect();
    for (one, claim) in &held {
        for (other, theirs) in &held {
            let apart =
                one == other || claim.key != theirs.key || !claim.mode.conflicts_with(theirs.mode);
            assert!(apart, "{space:?}");
        }
    }
}

/// Nobody waits without a reason, and places ascend.
fn check_queues(space: &LockSpace) {
    for session in space.waiting.keys() {
        assert_ne!(blockers(space, *session), [], "{space:?}");
    }
    for entry in space.entries.values() {
        assert!(entry.queue().is_sorted_by_key(|waiter| waiter.place));
    }
}

/// Nobody waits for itself, by holds, by the order of a queue, or both.
fn check_cycles(space: &LockSpace) {
    for start in space.waiting.keys() {
        let mut reached = BTreeSet::new();
        let mut open = blockers(space, *start);
        while let Some(session) = open.pop() {
            assert_ne!(session, *start, "{space:?}");
            if reached.insert(session) {
                open.extend(blockers(space, session));
            }
        }
    }
}

/// Everybody that a waiting session waits for: holders that conflict, requests ahead that do.
fn blockers(space: &LockSpace, session: SessionId) -> Vec<SessionId> {
    let Some(Claim { key, mode }) = space.waiting.get(&session).copied() else {
        return Vec::new();
    };
    let waiters = space.waiters(key);
    let ahead = waiters.take_while(|(waiter, _)| *waiter != session);
    let holders = space.holders(key).filter(|(holder, _)| *holder != session);
    let conflicting = holders
        .chain(ahead)
        .filter(|(_, of)| of.conflicts_with(mode));
    conflicting.map(|(blocker, _)| blocker).collect()
}
