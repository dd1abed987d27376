use std::fmt;

/// How a lock is held.
///
/// # Examples
///
/// ```
/// use advisory_core::LockMode;
///
/// assert!(LockMode::Exclusive.conflicts_with(LockMode::Shared));
/// assert!(!LockMode::Shared.conflicts_with(LockMode::Shared));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockMode {
    /// One holder, and nobody else in either mode.
    #[default]
    Exclusive,
    /// Any number of shared holders, and no exclusive one.
    Shared,
}

impl LockMode {
    /// Whether two owners cannot hold one key in these modes at the same time.
    #[must_use]
    pub fn conflicts_with(self, other: Self) -> bool {
        self == Self::Exclusive || other == Self::Exclusive
    }
}

impl fmt::Display for LockMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
        })
    }
}
