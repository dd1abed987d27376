use std::{
    future::pending,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use async_lock::OnceCell;

use super::{connection::Connection, wire::Message};
use crate::sync::Gate;

/// A point in what a client and a server say to each other: a message, and whether to stop before
/// or behind it.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    kind: Kind,
    /// A part of the statement's text.
    sql: &'static str,
    /// How many of the kind are let through first.
    skip: usize,
    side: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Startup,
    Prepare,
    Execute,
    Answer(u8),
}

/// On which side of a message to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    Behind,
}

impl Point {
    /// Before the first message of a connection.
    #[must_use]
    pub fn startup() -> Self {
        Self::before(Kind::Startup, "")
    }

    /// Before a statement that contains this text is prepared.
    #[must_use]
    pub fn prepare(sql: &'static str) -> Self {
        Self::before(Kind::Prepare, sql)
    }

    /// Before a statement that contains this text is run.
    #[must_use]
    pub fn execute(sql: &'static str) -> Self {
        Self::before(Kind::Execute, sql)
    }

    /// Before a message of the server, of this type.
    #[must_use]
    pub fn answer(kind: u8) -> Self {
        Self::before(Kind::Answer(kind), "")
    }

    fn before(kind: Kind, sql: &'static str) -> Self {
        Self {
            kind,
            sql,
            skip: 0,
            side: Side::Before,
        }
    }

    /// Behind the client's message: it goes through, and all that the server says from then on is
    /// held back.
    #[must_use]
    pub fn unanswered(mut self) -> Self {
        self.side = Side::Behind;
        self
    }

    /// Whether it is the answers that are held back.
    #[must_use]
    pub fn is_unanswered(self) -> bool {
        self.side == Side::Behind
    }

    /// At the n-th message of the kind, counted from one, instead of the next.
    #[must_use]
    pub fn nth(mut self, n: usize) -> Self {
        self.skip = n.saturating_sub(1);
        self
    }

    fn is_at(&self, message: &Message) -> bool {
        match (self.kind, message) {
            (Kind::Startup, Message::Startup) => true,
            (Kind::Prepare, Message::Prepare(sql)) | (Kind::Execute, Message::Execute(sql)) => {
                sql.contains(self.sql)
            }
            (Kind::Answer(expected), Message::Answer(kind)) => expected == *kind,
            _ => false,
        }
    }
}

/// A connection that is to be stopped, or has been, at a [`Point`].
///
/// What comes behind a message that is held waits behind it, the connection's end included.
/// Dropping it lets the connection go on.
#[derive(Debug)]
#[must_use = "a connection goes on when its stop is dropped"]
pub struct Stop {
    stopped: Arc<Stopped>,
}

impl Stop {
    /// Returns when a connection has come to the point.
    pub async fn reached(&self) {
        self.stopped.reached.passed().await;
    }

    /// Whether a connection has come to the point.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.stopped.reached.is_open()
    }

    /// Lets the connection go on.
    pub fn go_on(&self) {
        self.stopped.decide(Verdict::GoOn);
    }

    /// Ends the connection, for both of its ends.
    pub fn cut(&self) {
        self.stopped.decide(Verdict::Cut);
    }

    /// From now on the connection loses all that is said on it. When the client closes it, the
    /// server is told.
    pub fn swallow(&self) {
        self.stopped.decide(Verdict::Swallow);
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.go_on();
    }
}

#[derive(Clone, Copy, Debug)]
enum Verdict {
    GoOn,
    Cut,
    Swallow,
}

/// What a [`Stop`] and the connection at it share.
#[derive(Debug, Default)]
pub(super) struct Stopped {
    reached: Gate,
    verdict: OnceCell<Verdict>,
    connection: OnceLock<Arc<Connection>>,
}

impl Stopped {
    /// Tells the test that its connection has come.
    pub(super) fn reach(&self, connection: &Arc<Connection>) {
        let _ = self.connection.set(Arc::clone(connection));
        self.reached.open();
    }

    /// Returns when the connection may go on; never if it is cut, for who carries its messages may
    /// be on the way past here just then.
    pub(super) async fn passed(&self) {
        if let Verdict::Cut = self.verdict.wait().await {
            pending::<()>().await;
        }
    }

    fn decide(&self, verdict: Verdict) {
        // The first decision counts; a connection that never came needs none.
        if let Some(connection) = self.connection.get()
            && !self.verdict.is_initialized()
        {
            match verdict {
                Verdict::GoOn => {}
                Verdict::Cut => connection.cut(),
                Verdict::Swallow => connection.swallow(),
            }
        }
        let _ = self.verdict.set_blocking(verdict);
    }
}

/// The stops that no connection has come to yet.
#[derive(Debug, Default)]
pub(super) struct Stops {
    waiting: Mutex<Vec<(Point, Arc<Stopped>)>>,
}

impl Stops {
    pub(super) fn add(&self, point: Point) -> Stop {
        let stopped = Arc::new(Stopped::default());
        self.waiting().push((point, Arc::clone(&stopped)));
        Stop { stopped }
    }

    /// The stop that this message has come to, if there is one.
    pub(super) fn at(&self, message: &Message) -> Option<(Side, Arc<Stopped>)> {
        let mut waiting = self.waiting();
        // Nobody looks at those any more whose `Stop` has been dropped.
        waiting.retain(|(_, stopped)| !stopped.verdict.is_initialized());
        let at = waiting.iter_mut().position(|(point, _)| {
            if !point.is_at(message) {
                return false;
            }
            let here = point.skip == 0;
            point.skip = point.skip.saturating_sub(1);
            here
        })?;
        let (point, stopped) = waiting.swap_remove(at);
        Some((point.side, stopped))
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<(Point, Arc<Stopped>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
