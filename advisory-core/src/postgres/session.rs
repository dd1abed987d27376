#[cfg(test)]
mod tests;

use std::{
    fmt, mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_lock::SemaphoreGuardArc;
use async_trait::async_trait;

use super::{
    Connection, DriverError, Param, Row, Value, holders,
    known::Known,
    server::Server,
    settings::Upkeep,
    slice,
    sqlstate::INSUFFICIENT_PRIVILEGE,
    statements::{self, Statements},
    token::{self, Tokens},
    wait::{self, Slice},
};
use crate::{
    Error, FencingToken, Holder, LockKey, LockMode, LockSession, Result,
    limit::in_time,
    spi::{Claim, Request, SessionId, Turn, Waited},
};

/// One owner of locks: a PostgreSQL connection for as long as it is checked out.
///
/// Comes from [`PostgresBackend`](super::PostgresBackend). Dropping it closes the connection.
pub struct PostgresSession<C: Connection> {
    connection: C,
    server: Server,
    /// The server process that has answered so far.
    pid: Option<i32>,
    kept: Kept,
    /// How many claims it holds.
    held: usize,
    /// What the next session takes for granted.
    known: Arc<Known>,
    lost: bool,
    /// Whether its end has been a reason to doubt what is known: once, however often it is asked for.
    mourned: AtomicBool,
    /// Its place among those that may be in use at once.
    _place: Option<SemaphoreGuardArc>,
}

/// What keeps the server session.
pub(super) enum Kept {
    /// The connection, which is seen to.
    ByConnection(Upkeep),
    /// A transaction on it, while there is something to be kept.
    ByTransaction(Tokens),
}

impl<C: Connection> PostgresSession<C> {
    pub(super) fn new(
        connection: C,
        server: Server,
        kept: Kept,
        known: Arc<Known>,
        place: Option<SemaphoreGuardArc>,
    ) -> Self {
        Self {
            connection,
            server,
            pid: None,
            kept,
            held: 0,
            known,
            lost: false,
            mourned: AtomicBool::new(false),
            _place: place,
        }
    }

    /// Runs a batch, one statement for each run of requests that are alike, or that an exchange can
    /// do together.
    async fn run(&mut self, batch: &[Request]) -> Result<Vec<bool>> {
        let mut answers = Vec::with_capacity(batch.len());
        let mut runs = batch.chunk_by(|a, b| kind(*a) == kind(*b)).peekable();
        while let Some(requests) = runs.next() {
            let statement = runs.peek().and_then(|next| exchange(requests, next));
            let tries = statement.and_then(|_| runs.next()).unwrap_or_default();
            let rows = match statement {
                Some(statement) => self.exchange(statement, requests, tries).await,
                None => self.query(requests).await,
            };
            let rows = rows.map_err(|error| self.failed(error))?;
            if rows.len() != requests.len() + tries.len() {
                return Err(self.failed(DriverError::unexpected_answer()));
            }
            for row in rows {
                answers.push(self.answer(&row)?);
            }
        }
        Ok(answers)
    }

    /// Gives back some keys and asks for others.
    async fn exchange(
        &mut self,
        statement: &'static str,
        unlocks: &[Request],
        tries: &[Request],
    ) -> Result<Vec<Row>, DriverError> {
        let unlocks: Vec<_> = unlocks.iter().filter_map(bigint).collect();
        let tries: Vec<_> = tries.iter().filter_map(bigint).collect();
        let params = [Param::Int8Array(&unlocks), Param::Int8Array(&tries)];
        self.connection.query(statement, &params).await
    }

    /// Sends requests that are alike.
    async fn query(&mut self, requests: &[Request]) -> Result<Vec<Row>, DriverError> {
        let [first, rest @ ..] = requests else {
            return Ok(Vec::new());
        };
        let claim = first.claim();
        let statements = Statements::of(claim);
        let (one, each) = match first {
            Request::TryLock(_) => (statements.try_lock, statements.try_lock_each),
            Request::Unlock(_) => (statements.unlock, statements.unlock_each),
        };
        let connection = &mut self.connection;
        match claim.key {
            LockKey::BigInt(key) if rest.is_empty() => {
                connection.query(one, &[Param::Int8(key)]).await
            }
            LockKey::Pair(class, object) if rest.is_empty() => {
                let params = [Param::Int4(class), Param::Int4(object)];
                connection.query(one, &params).await
            }
            LockKey::BigInt(_) => {
                let keys: Vec<_> = requests.iter().filter_map(bigint).collect();
                connection.query(each, &[Param::Int8Array(&keys)]).await
            }
            LockKey::Pair(..) => {
                let (classes, objects): (Vec<_>, Vec<_>) = requests.iter().filter_map(pair).unzip();
                let params = [Param::Int8Array(&classes), Param::Int8Array(&objects)];
                connection.query(each, &params).await
            }
        }
    }

    /// Reads the answer to one request, and what it says about the server.
    fn answer(&mut self, row: &[Value]) -> Result<bool> {
        let [done, pid, of_server @ ..] = row else {
            return Err(self.failed(DriverError::unexpected_answer()));
        };
        let (Some(done), Some(pid)) = (done.bool(), pid.int4()) else {
            return Err(self.failed(DriverError::unexpected_answer()));
        };
        self.answered_by(pid)?;
        if let [standby, mark] = of_server {
            if let Kept::ByConnection(upkeep) = &mut self.kept {
                upkeep.see_mark(mark);
            }
            if standby.bool() == Some(true) {
                return Err(Error::NotPrimary);
            }
        }
        Ok(done)
    }

    /// Fails if the server process is another one than before.
    fn answered_by(&mut self, pid: i32) -> Result<()> {
        if *self.pid.get_or_insert(pid) == pid {
            Ok(())
        } else {
            self.known.doubt_sessions();
            Err(Error::SessionNotPinned)
        }
    }

    async fn wait_for_slice(&mut self, claim: Claim, turn: Turn) -> Result<Waited> {
        let deadlock_timeout = self.server.deadlock_timeout;
        let in_a_cycle = slice::is_suspicious(turn, deadlock_timeout) && {
            let awaited = holders::is_awaited(&mut self.connection).await;
            let (awaited, now) = awaited.map_err(|error| self.failed(error))?;
            // For the turns to come: how long this one may last is settled.
            self.server.deadlock_timeout = now;
            awaited
        };
        let slice = slice::length(turn, deadlock_timeout, in_a_cycle);
        let wait = wait::wait(&mut self.connection, &self.server, claim, slice);
        let ended = match turn.answer_within {
            Some(grace) => in_time(wait, slice.saturating_add(grace)).await,
            None => Some(wait.await),
        };
        let Some(ended) = ended else {
            self.lose();
            return Err(Error::unanswered(slice));
        };
        if let Err(error) = &ended
            && error.has_code(INSUFFICIENT_PRIVILEGE)
        {
            // It has been forbidden `plpgsql` since the server was looked at: the next wait is a plain one.
            self.server.plpgsql = false;
            self.known.doubt_server();
        }
        let (slice, pid) = ended.map_err(|error| self.failed(error))?;
        if let Some(pid) = pid {
            self.answered_by(pid)?;
        }
        match slice {
            Slice::Over(waited) => Ok(waited),
            Slice::Deadlock(detail) => Err(Error::deadlock(detail)),
        }
    }

    /// Sees to the connection that a lock depends on, or is about to.
    async fn keep_up(&mut self) -> Result<()> {
        let Kept::ByConnection(upkeep) = &mut self.kept else {
            return Ok(());
        };
        let done = upkeep.see_to(&mut self.connection).await;
        done.map_err(|error| self.failed(error))
    }

    /// Lets go of a server session that nothing is held on: somebody else may get it. So whoever
    /// waits and holds nothing keeps no transaction open from turn to turn, in which every index
    /// build would wait for him.
    async fn let_go(&mut self) {
        if self.held > 0 || self.is_lost() || matches!(self.kept, Kept::ByConnection(_)) {
            return;
        }
        // With nothing held nothing is lost but the connection; what was asked has been answered.
        if self.connection.batch(statements::COMMIT).await.is_err() {
            self.lose();
        }
        self.pid = None;
    }

    /// Fails once the session is lost, whatever the connection may still be good for.
    fn check(&self) -> Result<()> {
        if self.is_lost() {
            Err(Error::backend("the session has ended"))
        } else {
            Ok(())
        }
    }

    /// Counts what a batch took and gave back, and tells whether it took anything.
    fn count(&mut self, batch: &[Request], answers: &[bool]) -> bool {
        let (mut taken, mut given_back) = (0, 0);
        for (request, done) in batch.iter().zip(answers) {
            match (request, done) {
                (Request::TryLock(_), true) => taken += 1,
                (Request::TryLock(_), false) => {}
                (Request::Unlock(_), true) => given_back += 1,
                // What was held is gone, and with it perhaps more than that.
                (Request::Unlock(_), false) => self.known.doubt_sessions(),
            }
        }
        self.held = (self.held + taken).saturating_sub(given_back);
        taken > 0
    }

    fn lose(&mut self) {
        self.lost = true;
        self.mourn();
    }

    /// The next session may meet another server.
    fn mourn(&self) {
        if !self.mourned.swap(true, Ordering::Relaxed) {
            self.known.doubt_server();
        }
    }

    fn failed(&mut self, error: DriverError) -> Error {
        if error.ends_session() {
            self.lose();
        }
        error.into()
    }

    /// Makes sure that a failed call leaves none of the claims behind that it named.
    async fn settle<T>(
        &mut self,
        outcome: Result<T>,
        named: impl Iterator<Item = Claim> + Send,
    ) -> Result<T> {
        if let Err(error) = &outcome
            && !self.is_lost()
        {
            // Apart from the rest, for it makes up most of it and hardly ever runs.
            let freed = Box::pin(self.free(named)).await;
            if freed.is_err() || matches!(error, Error::SessionNotPinned) {
                self.lose();
            }
        }
        outcome
    }

    /// Unlocks those of the claims that the server says this session holds.
    async fn free(&mut self, claims: impl Iterator<Item = Claim> + Send) -> Result<()> {
        let held = holders::held(&mut self.connection).await;
        let mut held = held.map_err(|error| self.failed(error))?;
        let unlocks: Vec<_> = claims
            .filter(|claim| held.remove(&(*claim).into()))
            .map(Request::Unlock)
            .collect();
        // Several of those who share the session may read one key, which shows as one lock.
        let may_be_shared = |unlock: &Request| unlock.claim().mode == LockMode::Shared;
        if unlocks.iter().any(may_be_shared) {
            return Err(self.failed(DriverError::unexpected_answer()));
        }
        let freed = self.run(&unlocks).await?;
        if freed.contains(&false) {
            return Err(self.failed(DriverError::unexpected_answer()));
        }
        // Those of the claims have been taken out already.
        self.held = held.len();
        Ok(())
    }
}

#[async_trait]
impl<C: Connection> LockSession for PostgresSession<C> {
    fn id(&self) -> Option<SessionId> {
        self.pid.map(|pid| self.server.session(pid))
    }

    fn is_lost(&self) -> bool {
        let lost = self.lost || self.connection.is_closed();
        if lost {
            self.mourn();
        }
        lost
    }

    fn notices_loss(&self) -> bool {
        self.connection.notices_closing()
    }

    fn finds_deadlocks_within(&self) -> Option<Duration> {
        let within = slice::finds_deadlocks_within(self.server.deadlock_timeout);
        Some(within)
    }

    async fn submit(&mut self, batch: &[Request]) -> Result<Vec<bool>> {
        self.check()?;
        let mut answers = self.run(batch).await;
        if let Ok(answered) = &answers
            && self.count(batch, answered)
            && let Err(error) = self.keep_up().await
        {
            answers = Err(error);
        }
        let named = batch.iter().map(|request| request.claim());
        let answers = self.settle(answers, named).await;
        self.let_go().await;
        answers
    }

    async fn wait(&mut self, claim: Claim, turn: Turn) -> Result<Waited> {
        self.check()?;
        // Before the wait: its host may vanish meanwhile, and be granted the lock all the same.
        let waited = match self.keep_up().await {
            Ok(()) => self.wait_for_slice(claim, turn).await,
            Err(error) => Err(error),
        };
        self.held += usize::from(matches!(waited, Ok(Waited::Granted)));
        let waited = self.settle(waited, std::iter::once(claim)).await;
        self.let_go().await;
        waited
    }

    async fn holders(&mut self, key: LockKey) -> Result<Vec<Holder>> {
        self.check()?;
        let holders = holders::holders(&mut self.connection, &self.server, key).await;
        let holders = holders.map_err(|error| self.failed(error));
        self.let_go().await;
        holders
    }

    async fn fencing_token(&mut self) -> Result<FencingToken> {
        self.check()?;
        let token = match &self.kept {
            Kept::ByConnection(_) => token::committed(&mut self.connection).await.map(Some),
            Kept::ByTransaction(tokens) => tokens.take(&mut self.connection).await,
        };
        let token = token.map_err(|error| self.failed(error))?;
        token.map(FencingToken::new).ok_or_else(|| {
            Error::backend(
                "the server did not write its log to disk, or its standbys did not confirm it, in time \
                 for a fencing token",
            )
        })
    }

    /// An empty statement: the server answers it without a transaction.
    async fn probe(&mut self) -> Result<()> {
        self.check()?;
        let answer = self.connection.batch("").await;
        answer.map(drop).map_err(|error| self.failed(error))
    }

    async fn recycle(mut self: Box<Self>) {
        // What is held goes with the connection, whoever may have forgotten it.
        if self.is_lost() || self.held > 0 {
            return;
        }
        let undone = match &self.kept {
            Kept::ByConnection(upkeep) => upkeep.undo(&mut self.connection).await.is_ok(),
            Kept::ByTransaction(_) => true,
        };
        if undone {
            self.connection.recycle().await;
        }
    }
}

impl<C: Connection> fmt::Debug for PostgresSession<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresSession")
            .field("pid", &self.pid)
            .field("server", &self.server)
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}

/// What requests have to have in common to be sent as one statement.
fn kind(request: Request) -> impl PartialEq {
    let claim = request.claim();
    (
        mem::discriminant(&request),
        mem::discriminant(&claim.key),
        claim.mode,
    )
}

/// The statement for unlocks and the tries that follow, if there is one that does both.
fn exchange(unlocks: &[Request], tries: &[Request]) -> Option<&'static str> {
    let (unlock, attempt) = (unlocks.first()?, tries.first()?);
    let (given, wanted) = (unlock.claim(), attempt.claim());
    let is_one = unlock.is_unlock() && !attempt.is_unlock() && given.mode == wanted.mode;
    match (given.key, wanted.key) {
        (LockKey::BigInt(_), LockKey::BigInt(_)) if is_one => Statements::of(wanted).exchange,
        _ => None,
    }
}

fn bigint(request: &Request) -> Option<i64> {
    match request.claim().key {
        LockKey::BigInt(key) => Some(key),
        LockKey::Pair(..) => None,
    }
}

fn pair(request: &Request) -> Option<(i64, i64)> {
    match request.claim().key {
        LockKey::BigInt(_) => None,
        LockKey::Pair(class, object) => Some((class.into(), object.into())),
    }
}
