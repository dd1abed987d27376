use std::{fmt, sync::Arc, time::Duration};

use crate::{Holder, LockLabel};

/// The result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The cause that a driver gave, kept as the `source()` of an [`Error`].
///
/// It is shared, because every lock on a session that breaks reports the same cause.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Why a lock could not be taken, or was not held to the end.
///
/// That somebody else has the lock is no error: `try_lock` and `try_with` return an `Option`. The
/// variants keep apart what calls for different reactions: the caller's mistake
/// ([`CloseInsideLock`](Self::CloseInsideLock), [`ForeignLock`](Self::ForeignLock)), a lock that stayed busy
/// ([`Timeout`](Self::Timeout), [`Deadlock`](Self::Deadlock)), a server or a set-up on which locks
/// would not exclude anybody ([`NotPrimary`](Self::NotPrimary),
/// [`SessionNotPinned`](Self::SessionNotPinned), [`Unsupported`](Self::Unsupported)), resources
/// that ran out, and a lock that was lost.
///
/// `Display` never repeats what `source()` returns, and no message contains a password.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller's patience ended before the lock was free.
    #[error("{}timed out after {waited:?} waiting for {stage}{}", About(.lock), HeldBy(.holders, *.stage))]
    #[non_exhaustive]
    Timeout {
        /// How long the caller waited.
        waited: Duration,
        /// What it was waiting for when its patience ended.
        stage: Stage,
        /// Who held the lock at that moment, as far as could be found out; may be empty.
        holders: Vec<Holder>,
        /// The lock that it waited for; `None` if it waited for a manager to close.
        lock: Option<LockLabel>,
    },

    /// This owner waits for a lock whose owner waits for it; the server chose this one to give up.
    /// What it held before it still holds.
    #[error("{}deadlock between owners of locks{}", About(.lock), Detail(.detail))]
    #[non_exhaustive]
    Deadlock {
        /// The server's account of who waits for whom, if it gives one.
        detail: Option<String>,
        /// The lock that was not taken, if that is known.
        lock: Option<LockLabel>,
    },

    /// The session that held the lock ended, so the lock was free for others while its holder may
    /// still have been at work.
    #[error("{}the lock was lost: {section}", About(.lock))]
    #[non_exhaustive]
    Lost {
        /// What became of the work that the lock protected.
        section: Section,
        /// What ended the session, if that is known.
        #[source]
        cause: Option<Cause>,
        /// The lock; `None` if it is about a whole session.
        lock: Option<LockLabel>,
    },

    /// The manager has been closed.
    #[error("the lock manager is closed")]
    Closed,

    /// `close` was called inside a section of the same manager, which it would wait for forever.
    /// Nothing has been closed.
    #[error("a lock manager cannot be closed inside one of its own locks")]
    CloseInsideLock,

    /// A lock was to be taken on a session of another manager.
    #[error("the lock belongs to another manager than the session")]
    ForeignLock,

    /// The connection does not keep one server session: locks would leak, and two clients could
    /// hold the same one. There is a pooler in transaction or statement mode in between, or
    /// something that resets sessions between statements.
    ///
    /// Three things help: session pooling, a port that leads to the server directly, or, for
    /// transaction pooling, the backend's pinned mode. (On PostgreSQL, `PostgresOptions::pinned`.)
    #[error(
        "the connection does not keep one server session (a pooler in transaction or statement \
         mode?); use session pooling, a direct connection, or pinned mode behind transaction pooling"
    )]
    SessionNotPinned,

    /// The server is a standby. It would grant locks, and exclude nobody who uses the primary.
    #[error("the server is a standby; locks exclude only on the primary")]
    NotPrimary,

    /// The server, or what its connections lead to, has no advisory locks that can be relied on.
    #[error("the server is not supported: {reason}")]
    #[non_exhaustive]
    Unsupported {
        /// What is missing, or wrong.
        reason: String,
    },

    /// The server has no memory for another lock (SQLSTATE 53200). Its size is
    /// `max_locks_per_transaction` times `max_connections`; long-held locks share it with
    /// everything else.
    #[error("the server's lock table is full")]
    #[non_exhaustive]
    LockTableFull {
        /// The server's report.
        #[source]
        source: Cause,
    },

    /// No connection became free within the pool's own limit.
    #[error("no connection for a lock became free in time")]
    #[non_exhaustive]
    PoolExhausted {
        /// The pool's report.
        #[source]
        source: Cause,
    },

    /// The server or its driver failed in a way that has no special meaning here.
    #[error("the lock backend failed")]
    Backend(#[source] Cause),
}

impl Error {
    /// Wraps a driver's error that has no special meaning here.
    pub fn backend(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Backend(Arc::from(cause.into()))
    }

    /// The pool's own checkout limit ended.
    pub fn pool_exhausted(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::PoolExhausted {
            source: Arc::from(cause.into()),
        }
    }

    /// The server has no memory for another lock.
    pub fn lock_table_full(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::LockTableFull {
            source: Arc::from(cause.into()),
        }
    }

    /// The server lacks what this library needs.
    pub fn unsupported(reason: impl Into<String>) -> Self {
        Self::Unsupported {
            reason: reason.into(),
        }
    }

    /// Two owners wait for each other.
    #[must_use]
    pub fn deadlock(detail: Option<String>) -> Self {
        Self::Deadlock { detail, lock: None }
    }

    /// A lock held by no section is gone, for this reason.
    pub(crate) fn lost(cause: Option<Cause>) -> Self {
        let section = Section::None;
        Self::Lost {
            section,
            cause,
            lock: None,
        }
    }

    /// A wait ends with the lock or with an error. Should a backend ever say otherwise, that is
    /// its fault, and an error, not a panic.
    pub(crate) fn no_miss() -> Self {
        Self::backend("the wait ended with neither a lock nor an error")
    }

    /// The server has not answered for so long.
    pub(crate) fn unanswered(waited: Duration) -> Self {
        Self::Timeout {
            waited,
            stage: Stage::Server,
            holders: Vec::new(),
            lock: None,
        }
    }

    /// The same timeout, with the names of those who were in the way.
    pub(crate) fn held_by(mut self, held_by: Vec<Holder>) -> Self {
        if let Self::Timeout { holders, .. } = &mut self {
            *holders = held_by;
        }
        self
    }

    /// The same error, about this lock.
    pub(crate) fn about(mut self, label: &LockLabel) -> Self {
        if let Self::Timeout { lock, .. } | Self::Deadlock { lock, .. } | Self::Lost { lock, .. } =
            &mut self
        {
            *lock = Some(label.clone());
        }
        self
    }

    /// What ended a session, for those who held locks on it.
    pub(crate) fn cause(&self) -> Cause {
        match self {
            Self::Backend(cause) => Arc::clone(cause),
            error => Arc::new(error.clone()),
        }
    }

    /// The same loss, as it concerns a section.
    pub(crate) fn in_section(mut self, of_section: Section) -> Self {
        if let Self::Lost { section, .. } = &mut self {
            *section = of_section;
        }
        self
    }

    /// Whether the server may still be at work on what this error gave up on.
    pub(crate) fn is_unanswered(&self) -> bool {
        let stage = match self {
            Self::Timeout { stage, .. } => Some(*stage),
            _ => None,
        };
        stage == Some(Stage::Server)
    }
}

/// What a caller was waiting for when its patience ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// A connection of the backend's pool.
    Connection,
    /// The lock itself.
    Lock,
    /// An answer of the server, which had not come after a grace period either.
    Server,
    /// The release of all locks of a manager that is to be closed.
    Close,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connection => "a connection",
            Self::Lock => "the lock",
            Self::Server => "the server, which stopped answering",
            Self::Close => "the last lock to be released",
        })
    }
}

/// What became of the work that a lost lock protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Section {
    /// The section was stopped, at the next point where it awaited something. What it had done is
    /// done; what it had spawned, and what blocks a thread, runs on.
    Stopped,
    /// The section ran to its end, for some of the time without the lock.
    Completed,
    /// There was no section: the lock was held by a guard, or was still being acquired.
    None,
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "its section was stopped",
            Self::Completed => "its section ran to the end, in part without it",
            Self::None => "its session has ended",
        })
    }
}

struct About<'a>(&'a Option<LockLabel>);

impl fmt::Display for About<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(label) => write!(f, "lock {label}: "),
            None => Ok(()),
        }
    }
}

struct HeldBy<'a>(&'a [Holder], Stage);

impl fmt::Display for HeldBy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, holder) in self.0.iter().enumerate() {
            f.write_str(if i == 0 { "; held by session " } else { ", " })?;
            holder.fmt(f)?;
            // Else it is the key that was asked for.
            if self.1 == Stage::Close {
                write!(f, " with key {}", holder.key)?;
            }
        }
        Ok(())
    }
}

struct Detail<'a>(&'a Option<String>);

impl fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // The server writes a line for each owner, and a log wants one line.
            Some(detail) => write!(f, ": {}", detail.replace('\n', " ")),
            None => Ok(()),
        }
    }
}
