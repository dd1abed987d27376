use std::{
    collections::{BTreeMap, VecDeque},
    future::poll_fn,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    task::Poll,
    time::SystemTime,
};

use advisory_core::{
    Error, FencingToken, Holder, LockKey, Result,
    spi::{Claim, SessionId},
};

use crate::{
    pool::{Pool, PoolId},
    space::LockSpace,
    wakers::Wakers,
};

#[cfg(test)]
mod tests;

/// What all clones of a backend and all of its sessions share.
#[derive(Debug, Default)]
pub(crate) struct Server {
    state: Mutex<State>,
}

/// The lock table, who may use it, and what a test has done to it.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) locks: LockSpace,
    /// Sessions that are alive.
    sessions: BTreeMap<SessionId, Alive>,
    /// Sessions to be, first come first served among those of one pool.
    openers: VecDeque<(PoolId, SessionId)>,
    pub(crate) wakers: Wakers,
    /// While set, nothing is answered.
    pub(crate) stalled: bool,
    /// What new sessions are refused with.
    pub(crate) refusal: Option<Error>,
    /// The last fencing token that was given out.
    token: i64,
}

#[derive(Clone, Copy, Debug)]
struct Alive {
    pool: PoolId,
    /// When it last began to wait for a lock, or to be idle.
    since: SystemTime,
}

impl Server {
    /// Works on the state. Whoever has something to do because of that is woken afterwards.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let (value, due) = {
            // The state's methods leave it whole, and none calls foreign code.
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let value = work(&mut state);
            for session in state.locks.take_granted() {
                state.touch(session);
                state.wakers.wake(session);
            }
            (value, state.wakers.take_due())
        };
        due.deliver();
        value
    }

    /// Performs one call of a session: repeats the step, whenever something has happened to the
    /// session, until it is ready. A stalled server performs nothing; a dead session fails.
    pub(crate) async fn call<T>(
        &self,
        session: SessionId,
        mut step: impl FnMut(&mut State) -> Poll<T>,
    ) -> Result<T> {
        poll_fn(|cx| {
            self.with(|state| {
                let answer = if !state.is_alive(session) {
                    Poll::Ready(Err(killed()))
                } else if state.stalled {
                    Poll::Pending
                } else {
                    step(state).map(Ok)
                };
                match answer {
                    Poll::Pending => state.wakers.park(session, cx),
                    Poll::Ready(_) => state.touch(session),
                }
                answer
            })
        })
        .await
    }

    /// Opens a session of the pool, once there may be another one.
    pub(crate) async fn open(&self, pool: &Pool) -> Result<SessionId> {
        let session = next_session();
        let _opening = Opening {
            server: self,
            session,
        };
        poll_fn(|cx| {
            self.with(|state| {
                let opened = state.open(pool, session);
                if opened.is_pending() {
                    state.wakers.park(session, cx);
                }
                opened.map_ok(|()| session)
            })
        })
        .await
    }
}

impl State {
    pub(crate) fn next_token(&mut self) -> FencingToken {
        self.token += 1;
        FencingToken::new(self.token)
    }

    fn open(&mut self, pool: &Pool, session: SessionId) -> Poll<Result<()>> {
        if pool.is_closed() {
            return Poll::Ready(Err(Error::Closed));
        }
        if let Some(refusal) = &self.refusal {
            return Poll::Ready(Err(refusal.clone()));
        }
        let opener = (pool.id(), session);
        if !self.openers.contains(&opener) {
            self.openers.push_back(opener);
        }
        // There has to be room for those who came earlier, too.
        let taken = || {
            let alive = self.sessions.values();
            let alive = alive.filter(|alive| alive.pool == pool.id());
            let mut openers = self.openers.iter().filter(|(of, _)| *of == pool.id());
            let earlier = openers.position(|(_, opener)| *opener == session);
            alive.count() + earlier.unwrap_or(0)
        };
        if self.stalled || pool.is_full(taken) {
            return Poll::Pending;
        }
        let alive = Alive {
            pool: pool.id(),
            since: SystemTime::now(),
        };
        self.sessions.insert(session, alive);
        self.withdraw(session);
        Poll::Ready(Ok(()))
    }

    /// Takes a session to be out of its pool's line, and lets the next one see whether there is
    /// room for it.
    fn withdraw(&mut self, session: SessionId) {
        let mut openers = self.openers.iter();
        if let Some(at) = openers.position(|(_, opener)| *opener == session)
            && let Some((pool, _)) = self.openers.remove(at)
        {
            self.wakers.forget(session);
            self.wake_opener(pool);
        }
    }

    /// Ends a session and frees whatever it holds; whether it was alive.
    pub(crate) fn end(&mut self, session: SessionId) -> bool {
        let Some(alive) = self.sessions.remove(&session) else {
            return false;
        };
        self.locks.end(session);
        self.wakers.forget(session);
        self.wake_opener(alive.pool);
        true
    }

    pub(crate) fn is_alive(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    pub(crate) fn sessions(&self) -> impl Iterator<Item = SessionId> {
        self.sessions.keys().copied()
    }

    pub(crate) fn holders(&self, key: LockKey) -> Vec<Holder> {
        let holders = self.locks.holders(key);
        holders
            .map(|(session, mode)| self.holder(session, Claim { key, mode }))
            .collect()
    }

    /// What is to be known of a session that holds a claim.
    pub(crate) fn holder(&self, session: SessionId, claim: Claim) -> Holder {
        let state = if self.locks.is_waiting(session) {
            "active"
        } else {
            "idle"
        };
        let mut holder = Holder::new(session, claim.key, claim.mode);
        holder.application = Some("memory".to_owned());
        holder.state = Some(state.to_owned());
        holder.since = self.sessions.get(&session).map(|alive| alive.since);
        holder
    }

    /// The session has begun to wait, or to be idle.
    fn touch(&mut self, session: SessionId) {
        if let Some(alive) = self.sessions.get_mut(&session) {
            alive.since = SystemTime::now();
        }
    }

    fn wake_opener(&mut self, pool: PoolId) {
        let openers = self.openers.iter().filter(|(of, _)| *of == pool);
        for (_, session) in openers {
            self.wakers.wake(*session);
        }
    }
}

/// A session to be; leaves nothing behind if it comes to nothing.
struct Opening<'a> {
    server: &'a Server,
    session: SessionId,
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.server.with(|state| state.withdraw(self.session));
    }
}

/// A number that no other session of this process has, whichever backend it belongs to.
fn next_session() -> SessionId {
    static NEXT: AtomicI64 = AtomicI64::new(1);
    const MEMORY: u64 = u64::from_be_bytes(*b"advisory");
    SessionId::new(MEMORY, NEXT.fetch_add(1, Ordering::Relaxed))
}

fn killed() -> Error {
    Error::backend("the session has been killed")
}
