use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use foldhash::HashMap;
use futures::future::select;
use futures_timer::Delay;
use smallvec::smallvec;

use super::{
    Forest,
    gate::{BranchId, Entrance},
    trunk::Trunk,
};
use crate::{
    Error, FencingToken, Holder, LockKey, LockMode, LockSession, Result,
    limit::in_time,
    line::{Batch, LineOwner, Vitals},
    spi::{Claim, Request, SessionId, Turn, Waited},
};

/// How long a branch waits for another one before it looks again, where nobody tells it.
const TURN: Duration = Duration::from_millis(400);

const NOT_YET: Waited = Waited::TurnOver {
    behind_readers: false,
};

/// One owner of locks on a session that others use as well.
///
/// What another process holds it waits for, and then holds, on a session of its own: a statement
/// that waits would keep all branches waiting.
#[derive(Debug)]
pub(super) struct Branch {
    forest: Arc<Forest>,
    name: BranchId,
    trunk: Arc<Trunk>,
    id: Option<SessionId>,
    /// What it holds or is after: each has passed the gate.
    claims: Vec<Passed>,
    /// The keys that it could not have on the trunk.
    aside: HashMap<LockKey, Aside>,
    lost: bool,
}

#[derive(Debug)]
struct Passed {
    claim: Claim,
    is_held: bool,
}

/// A session for one key.
#[derive(Debug)]
struct Aside {
    session: Box<dyn LockSession>,
    /// By which others of this process know it for one of ours.
    vitals: Vitals,
}

impl Branch {
    pub(super) fn new(forest: Arc<Forest>, trunk: Arc<Trunk>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            forest,
            name: NEXT.fetch_add(1, Ordering::Relaxed),
            trunk,
            id: None,
            claims: Vec::new(),
            aside: HashMap::default(),
            lost: false,
        }
    }

    fn enter(&mut self, claim: Claim) -> Entrance {
        let join_within = self.forest.options.hand_over_within;
        let entrance = self.forest.gate.enter(claim, self.name, join_within);
        if entrance != Entrance::Shut {
            self.claims.push(Passed {
                claim,
                is_held: false,
            });
        }
        entrance
    }

    /// What has come of asking for a claim, or of giving it back.
    fn conclude(&mut self, claim: Claim, is_held: bool) {
        // Of two the one that is held is not the one that was asked about.
        let of_claim = |held| {
            let mut claims = self.claims.iter();
            claims.position(|passed| passed.claim == claim && passed.is_held == held)
        };
        let Some(at) = of_claim(false).or_else(|| of_claim(true)) else {
            return;
        };
        if is_held {
            self.claims[at].is_held = true;
        } else {
            self.claims.swap_remove(at);
            self.forest.gate.leave(claim, self.name);
        }
    }

    fn holds_on_trunk(&self) -> bool {
        let mut held = self.claims.iter().filter(|passed| passed.is_held);
        held.any(|passed| !self.aside.contains_key(&passed.claim.key))
    }

    fn holds(&self, key: LockKey) -> bool {
        let mut held = self.claims.iter().filter(|passed| passed.is_held);
        held.any(|passed| passed.claim.key == key)
    }

    async fn run(&mut self, batch: &[Request]) -> Result<Vec<bool>> {
        let mut answers = vec![false; batch.len()];
        let (mut asked, mut aside) = (Vec::new(), Vec::new());
        for (at, request) in batch.iter().enumerate() {
            let claim = request.claim();
            let entrance = match request {
                Request::TryLock(_) => self.enter(claim),
                Request::Unlock(_) => Entrance::Open,
            };
            match entrance {
                Entrance::Shut => {}
                Entrance::Open if !self.aside.contains_key(&claim.key) => asked.push(at),
                Entrance::Open | Entrance::Aside => aside.push(at),
            }
        }
        if !asked.is_empty() {
            let may_move = !self.holds_on_trunk();
            let requests: Batch = asked.iter().map(|at| batch[*at]).collect();
            self.give_back(&requests);
            let done = self.ask_trunk(requests, may_move).await?;
            for (at, done) in asked.into_iter().zip(done) {
                answers[at] = done;
                let is_held = done && !batch[at].is_unlock();
                self.conclude(batch[at].claim(), is_held);
            }
        }
        // What is held must not depend on there being a connection for these.
        let limit = self.forest.options.holder_answers_within() / 2;
        let until = Instant::now() + limit;
        for at in aside {
            let left = until.saturating_duration_since(Instant::now());
            let opened = in_time(self.aside(batch[at].claim().key), left).await;
            opened.ok_or_else(|| {
                Error::pool_exhausted(format!(
                    "there was no connection besides the shared one within {limit:?}"
                ))
            })??;
            answers[at] = self.ask_aside(batch[at]).await?;
        }
        Ok(answers)
    }

    /// What is to be unlocked is the trunk's from now on, whatever becomes of this branch.
    fn give_back(&mut self, batch: &[Request]) {
        for request in batch.iter().filter(|request| request.is_unlock()) {
            let mut claims = self.claims.iter_mut();
            if let Some(passed) = claims.find(|passed| passed.claim == request.claim()) {
                passed.is_held = false;
            }
        }
    }

    /// Asks on the session that is shared, or another one if the branch may move there.
    async fn ask_trunk(&mut self, batch: Batch, may_move: bool) -> Result<Vec<bool>> {
        let mut done = self.trunk.line().submit(batch.clone()).await;
        if done.is_err() && self.trunk.is_lost() {
            // To one who held nothing on it, it is no loss.
            self.lost |= !may_move;
            if may_move && !done.as_ref().is_err_and(Error::is_unanswered) {
                self.trunk = self.forest.trunk().await?;
                done = self.trunk.line().submit(batch).await;
            }
        }
        self.identify(self.trunk.id());
        done
    }

    /// Takes note of who has answered. As long as it holds something it stays who it is.
    fn identify(&mut self, id: Option<SessionId>) {
        if self.claims.iter().any(|passed| passed.is_held) {
            self.id = self.id.or(id);
        } else {
            self.id = id;
        }
    }

    /// Asks on the session that the key has to itself.
    async fn ask_aside(&mut self, request: Request) -> Result<bool> {
        let claim = request.claim();
        let aside = self.aside(claim.key).await?;
        let done = aside.session.submit(&[request]).await?;
        let done = done == [true];
        self.heard_aside(claim.key);
        self.conclude(claim, done && !request.is_unlock());
        self.clear_aside(claim.key).await;
        Ok(done)
    }

    /// The session that a key has to itself.
    async fn aside(&mut self, key: LockKey) -> Result<&mut Aside> {
        if !self.aside.contains_key(&key) {
            let session = self.forest.backend.open().await?;
            let vitals = Vitals::new();
            self.aside.insert(key, Aside { session, vitals });
        }
        let aside = self.aside.get_mut(&key);
        aside.ok_or_else(|| Error::backend("a session has gone astray"))
    }

    fn heard_aside(&mut self, key: LockKey) {
        if let Some(aside) = self.aside.get(&key) {
            let id = aside.session.id();
            aside.vitals.hear(id);
            self.identify(id);
        }
    }

    /// Gives a key's session back, once nothing is held or wanted there.
    async fn clear_aside(&mut self, key: LockKey) {
        let in_use = self.claims.iter().any(|passed| passed.claim.key == key);
        if !in_use && let Some(aside) = self.aside.remove(&key) {
            aside.session.recycle().await;
        }
    }

    /// Ends the wait for all but this claim.
    async fn wait_for_nothing_but(&mut self, claim: Option<Claim>) {
        let waiting = self.claims.iter().filter(|passed| !passed.is_held);
        let given_up: Vec<_> = waiting
            .map(|passed| passed.claim)
            .filter(|waiting| Some(*waiting) != claim)
            .collect();
        for claim in given_up {
            self.conclude(claim, false);
            self.clear_aside(claim.key).await;
        }
    }

    async fn wait_for_turn(&mut self, claim: Claim, turn: Turn) -> Result<Waited> {
        let is_waiting = self.claims.iter().any(|passed| passed.claim == claim);
        if !is_waiting {
            let forest = Arc::clone(&self.forest);
            let left = forest.gate.listen();
            let pause = turn.patience.map_or(TURN, |patience| patience.min(TURN));
            match self.enter(claim) {
                Entrance::Shut => {
                    select(left, Delay::new(pause)).await;
                    return Ok(NOT_YET);
                }
                Entrance::Open if !self.aside.contains_key(&claim.key) => {
                    if let Some(waited) = self.wait_on_trunk(claim, pause).await? {
                        return Ok(waited);
                    }
                }
                Entrance::Open | Entrance::Aside => {}
            }
        }
        self.wait_aside(claim, turn).await
    }

    /// Takes what is to be had on the trunk without waiting; `None` if the wait has to be aside.
    async fn wait_on_trunk(&mut self, claim: Claim, pause: Duration) -> Result<Option<Waited>> {
        let may_move = !self.holds_on_trunk();
        let attempt = smallvec![Request::TryLock(claim)];
        if self.ask_trunk(attempt, may_move).await? == [true] {
            self.conclude(claim, true);
            return Ok(Some(Waited::Granted));
        }
        if !self.holds(claim.key) {
            return Ok(None);
        }
        // What stands in the way of an upgrade elsewhere would stand in the way of a session of its
        // own, too, and this branch with it.
        let waited = if claim.mode == LockMode::Exclusive {
            self.conclude(claim, false);
            Delay::new(pause).await;
            NOT_YET
        } else {
            // A try misses while a writer is queued, though who writes may read.
            let waited = self.trunk.wait(claim).await?;
            self.conclude(claim, waited == Waited::Granted);
            waited
        };
        Ok(Some(waited))
    }

    /// Waits on the session that the key has to itself.
    async fn wait_aside(&mut self, claim: Claim, turn: Turn) -> Result<Waited> {
        let turn = Turn {
            holding: self.aside.contains_key(&claim.key) && self.holds(claim.key),
            wanted: false,
            ..turn
        };
        // A connection may take longer than a turn; what is held must not depend on that.
        let within = turn.patience.unwrap_or(Turn::LONGEST);
        let Some(aside) = in_time(self.aside(claim.key), within).await else {
            return Ok(NOT_YET);
        };
        let waited = aside?.session.wait(claim, turn).await?;
        self.heard_aside(claim.key);
        if waited == Waited::Granted {
            self.conclude(claim, true);
        }
        Ok(waited)
    }

    /// After a failure: what was named is held no more, or the branch is lost.
    fn forsake(&mut self, named: impl Iterator<Item = Claim>) {
        for claim in named {
            // Of two the one that is not held goes first, as in `conclude`.
            let of_claim = self.claims.iter().filter(|passed| passed.claim == claim);
            let Some(was_held) = of_claim.map(|passed| passed.is_held).min() else {
                continue;
            };
            self.conclude(claim, false);
            if let Some(aside) = self.aside.remove(&claim.key) {
                // With its session goes all that it held.
                self.lost |= self.holds(claim.key);
                drop(aside);
            } else if was_held {
                self.trunk.line().owe([claim]);
            }
        }
    }

    fn check(&self) -> Result<()> {
        if self.is_lost() {
            Err(Error::backend("the session has ended"))
        } else {
            Ok(())
        }
    }
}

#[async_trait]
impl LockSession for Branch {
    fn id(&self) -> Option<SessionId> {
        self.id
    }

    fn is_lost(&self) -> bool {
        let mut aside = self.aside.iter();
        self.lost
            || aside.any(|(key, aside)| self.holds(*key) && aside.session.is_lost())
            || self.holds_on_trunk() && self.trunk.is_lost()
    }

    fn notices_loss(&self) -> bool {
        self.trunk.line().notices_loss()
    }

    /// Of the waits aside: on the trunk none lasts.
    fn finds_deadlocks_within(&self) -> Option<Duration> {
        let aside = self.aside.values();
        aside
            .filter_map(|aside| aside.session.finds_deadlocks_within())
            .max()
    }

    async fn submit(&mut self, batch: &[Request]) -> Result<Vec<bool>> {
        self.check()?;
        self.wait_for_nothing_but(None).await;
        let answers = self.run(batch).await;
        if answers.is_err() {
            self.forsake(batch.iter().map(|request| request.claim()));
        }
        answers
    }

    async fn wait(&mut self, claim: Claim, turn: Turn) -> Result<Waited> {
        self.check()?;
        self.wait_for_nothing_but(Some(claim)).await;
        let waited = self.wait_for_turn(claim, turn).await;
        if waited.is_err() {
            self.forsake([claim].into_iter());
        }
        waited
    }

    async fn holders(&mut self, key: LockKey) -> Result<Vec<Holder>> {
        self.check()?;
        self.trunk.line().holders(key).await
    }

    /// Written where a lock is held, so that nobody gets one whose lock has gone. If there are
    /// several such sessions, all of them were there when the first one wrote it.
    async fn fencing_token(&mut self) -> Result<FencingToken> {
        self.check()?;
        let mut token = None;
        if self.holds_on_trunk() || self.aside.is_empty() {
            token = Some(self.trunk.line().fencing_token().await?);
        }
        let sessions = self.aside.values_mut().map(|aside| &mut aside.session);
        for session in sessions {
            if token.is_none() {
                token = Some(session.fencing_token().await?);
            } else if let Err(error) = session.probe().await {
                self.lost = true;
                return Err(error);
            }
        }
        token.ok_or_else(|| Error::backend("there is no session to ask"))
    }

    async fn probe(&mut self) -> Result<()> {
        self.check()?;
        self.trunk.probe().await?;
        for aside in self.aside.values_mut() {
            aside.session.probe().await?;
        }
        Ok(())
    }

    async fn recycle(mut self: Box<Self>) {
        self.wait_for_nothing_but(None).await;
        for (_, aside) in self.aside.drain() {
            aside.session.recycle().await;
        }
    }
}

impl Drop for Branch {
    fn drop(&mut self) {
        let named: Vec<_> = self.claims.iter().map(|passed| passed.claim).collect();
        self.forsake(named.into_iter());
    }
}
