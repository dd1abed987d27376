use std::time::Duration;

/// What a session may know when it chooses how long to wait in one go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turn {
    /// How long the turn may be; `None` is without limit. It is what is left of the caller's patience,
    /// or less: somebody may have to be told in time that what the session holds is lost.
    pub patience: Option<Duration>,
    /// How long it may be where a server would not find a deadlock sooner: what is left of the caller's
    /// patience. See [`LockSession::finds_deadlocks_within`](super::LockSession::finds_deadlocks_within).
    pub patience_in_a_cycle: Option<Duration>,
    /// How long the caller has waited for this claim so far.
    pub waited: Duration,
    /// Whether the session holds other claims. Only then can its wait be part of a deadlock.
    pub holding: bool,
    /// Whether somebody else wants to use the session, and so wants this turn to be short.
    pub wanted: bool,
    /// How long the session may be kept waiting for the server's answer after the turn should have
    /// ended, before it has to give itself up as lost; `None` is for as long as the core lets it,
    /// which has to assume the [longest](Self::LONGEST) of turns.
    pub answer_within: Option<Duration>,
    /// How many turns in a row, up to this one, ended behind shared holders only; see
    /// [`Waited::TurnOver`].
    pub behind_readers: u32,
}

impl Turn {
    /// No turn may last longer than this, whatever its patience; a session that is silent for long
    /// after that counts as lost.
    pub const LONGEST: Duration = Duration::from_secs(30);

    /// The first turn of a wait that is willing to take `patience`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use advisory_core::spi::Turn;
    ///
    /// let turn = Turn::first(Some(Duration::from_secs(3)));
    /// assert_eq!(turn.waited, Duration::ZERO);
    /// ```
    #[must_use]
    pub fn first(patience: Option<Duration>) -> Self {
        Self {
            patience,
            patience_in_a_cycle: patience,
            ..Self::default()
        }
    }
}

/// How a turn of waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The claim is held.
    Granted,
    /// Not this time: the claim is not held, and nothing is left waiting on the server.
    TurnOver {
        /// Whether shared holders only stood in the way. Each turn's end lets queued readers in,
        /// so a writer behind them needs longer turns to get its own.
        behind_readers: bool,
    },
}
