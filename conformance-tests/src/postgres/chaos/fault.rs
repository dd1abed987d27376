use std::fmt;

use fastrand::Rng;

use super::clock::Span;

/// What can befall a worker, its sessions, its network or the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// One of the worker's sessions is terminated.
    Terminated,
    /// All of its connections are closed.
    Cut,
    /// A connection's next answer is late, though not too late.
    Delayed,
    /// Nothing gets through, and nobody is told.
    Silent,
    /// The same, and the server ends the worker's sessions.
    SilentAndTerminated,
    /// The process does not run for a while.
    Stopped,
    /// The same, and the server ends its sessions.
    StoppedAndTerminated,
    /// The process is killed, and replaced.
    Killed,
    /// The server is stopped in good order, and started again.
    Restarted,
    /// The server crashes, and recovers.
    Crashed,
}

impl Fault {
    /// Chooses a fault of a single worker.
    pub(super) fn of_worker(rng: &mut Rng) -> Self {
        match rng.u8(0..20) {
            0..5 => Self::Terminated,
            5..8 => Self::Cut,
            8..10 => Self::Delayed,
            10..12 => Self::Silent,
            12..15 => Self::SilentAndTerminated,
            15 => Self::Stopped,
            16..18 => Self::StoppedAndTerminated,
            _ => Self::Killed,
        }
    }

    /// Chooses a fault of the server.
    pub(super) fn of_server(rng: &mut Rng) -> Self {
        if rng.bool() {
            Self::Restarted
        } else {
            Self::Crashed
        }
    }

    /// Whether the server ends all sessions of the worker besides.
    pub(super) fn terminates_all(self) -> bool {
        matches!(self, Self::SilentAndTerminated | Self::StoppedAndTerminated)
    }
}

/// A fault that has struck.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strike {
    pub(super) fault: Fault,
    /// Whom it struck; `None` is everybody.
    pub(super) worker: Option<usize>,
    pub(super) span: Span,
}

impl fmt::Display for Strike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Span { from, until } = self.span;
        write!(f, "{from:?} to {until:?}: {:?}", self.fault)?;
        match self.worker {
            Some(worker) => write!(f, " (worker {worker})"),
            None => Ok(()),
        }
    }
}
