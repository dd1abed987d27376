use crate::{LockKey, LockMode};

/// What an owner wants to hold or holds: a key in a mode.
///
/// One owner may hold the same key in both modes: these are two claims, taken and released
/// independently, as on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Claim {
    /// The key.
    pub key: LockKey,
    /// The mode.
    pub mode: LockMode,
}

/// One step of a batch; see [`LockSession::submit`](super::LockSession::submit).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Take the claim if that needs no waiting. Answered with whether it was taken.
    TryLock(Claim),
    /// Give the claim back, in the mode it was taken in. Answered with whether it was held.
    Unlock(Claim),
}

impl Request {
    /// The claim that this step is about.
    #[must_use]
    pub fn claim(self) -> Claim {
        match self {
            Self::TryLock(claim) | Self::Unlock(claim) => claim,
        }
    }

    /// Whether the claim is given back.
    #[must_use]
    pub fn is_unlock(self) -> bool {
        matches!(self, Self::Unlock(_))
    }
}
