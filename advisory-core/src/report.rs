use std::fmt;

/// Whether connections keep their server sessions, on which locks live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pooling {
    /// Each connection has a session of its own for as long as it lasts: there is no pooler, or it
    /// is in session mode.
    Session,
    /// A session lasts for a transaction, then others may get it.
    Transaction,
    /// A session lasts for a statement, and there are no transactions.
    Statement,
    /// Each connection has a session of its own, but something resets it between statements, and
    /// locks go with that.
    Reset,
}

impl fmt::Display for Pooling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "each connection keeps its server session",
            Self::Transaction => "a pooler lends server sessions for a transaction at a time",
            Self::Statement => "a pooler lends server sessions for a statement at a time",
            Self::Reset => "something resets the server session between statements",
        })
    }
}
