//! Finds cycles of sessions that wait for each other.

use std::{
    collections::{HashMap, VecDeque, hash_map},
    fmt, iter,
};

use advisory_core::{
    LockMode,
    spi::{Claim, SessionId},
};

use super::{LockSpace, entry::Entry};

/// A cycle of waits, each for the next one's hold or request; the last is for the first one's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cycle(Vec<Edge>);

/// Why a session waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edge {
    session: SessionId,
    /// What it waits for.
    claim: Claim,
    /// Who has to let go of something first.
    blocker: SessionId,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The blocker holds what conflicts.
    Held,
    /// The blocker has asked for what conflicts, and stands in front.
    Order,
}

/// A cycle through this session in which everyone waits for what the next one holds. Only a
/// session that gives up ends it.
pub(super) fn of_holds(space: &LockSpace, session: SessionId) -> Option<Cycle> {
    find(session, |waiting| held_against(space, waiting))
}

/// A reader that waits behind a writer and is part of a cycle through this session for no other
/// reason; to be looked for once there is no cycle [`of_holds`]. It could be granted at once, so
/// whoever lets it in front of its queue ends the cycle.
///
/// No other order is ever to blame. A writer that waits behind others waits for the same holders
/// as they do, so its cycle is one of holds. And one writer ahead of a reader stands for all, for
/// the same reason.
pub(super) fn of_order(space: &LockSpace, session: SessionId) -> Option<SessionId> {
    let cycle = find(session, |waiting| {
        held_against(space, waiting).chain(first_writer_ahead(space, waiting))
    })?;
    let mut by_order = cycle.0.iter().filter(|edge| edge.kind == Kind::Order);
    by_order.next().map(|edge| edge.session)
}

/// A shortest cycle through this session along the edges that lead out of each.
fn find<I>(start: SessionId, mut edges: impl FnMut(SessionId) -> I) -> Option<Cycle>
where
    I: Iterator<Item = Edge>,
{
    let mut open = VecDeque::from([start]);
    let mut reached = HashMap::new();
    while let Some(session) = open.pop_front() {
        for edge in edges(session) {
            if edge.blocker == start {
                return Some(trace(start, edge, &reached));
            }
            if let hash_map::Entry::Vacant(vacant) = reached.entry(edge.blocker) {
                vacant.insert(edge);
                open.push_back(edge.blocker);
            }
        }
    }
    None
}

/// The edges from the start on to the one that leads back to it.
fn trace(start: SessionId, last: Edge, reached: &HashMap<SessionId, Edge>) -> Cycle {
    let before = |edge: &Edge| match edge.session {
        session if session == start => None,
        session => reached.get(&session).copied(),
    };
    let mut cycle: Vec<_> = iter::successors(Some(last), before).collect();
    cycle.reverse();
    Cycle(cycle)
}

fn held_against(space: &LockSpace, session: SessionId) -> impl Iterator<Item = Edge> {
    waits_for(space, session)
        .into_iter()
        .flat_map(move |(claim, entry)| {
            let holders = entry.held_against(session, claim.mode);
            holders.map(move |(blocker, _)| Edge {
                session,
                claim,
                blocker,
                kind: Kind::Held,
            })
        })
}

fn first_writer_ahead(space: &LockSpace, session: SessionId) -> Option<Edge> {
    let (claim, entry) = waits_for(space, session)?;
    if claim.mode == LockMode::Exclusive {
        return None;
    }
    let mut ahead = entry.ahead_of(session);
    let writer = ahead.find(|waiter| waiter.mode == LockMode::Exclusive)?;
    Some(Edge {
        session,
        claim,
        blocker: writer.session,
        kind: Kind::Order,
    })
}

fn waits_for(space: &LockSpace, session: SessionId) -> Option<(Claim, &Entry)> {
    let claim = *space.waiting.get(&session)?;
    Some((claim, space.entries.get(&claim.key)?))
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, edge) in self.0.iter().enumerate() {
            let Claim { key, mode } = edge.claim;
            let separator = if i == 0 { "" } else { "; " };
            write!(
                f,
                "{separator}session {} waits for key {key} ({mode}), held by session {}",
                edge.session, edge.blocker
            )?;
        }
        Ok(())
    }
}
