use std::{fmt, time::Duration};

/// What [`LockManager::check`](crate::LockManager::check) found out about the server.
///
/// Prints as a page that a person can act on; the fields are for programs. What a backend cannot
/// know is `None` or empty.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What the server calls itself, with its version.
    pub server: String,
    /// Whether it is a primary, or a standby that follows one.
    pub role: Option<Role>,
    /// Whether connections keep their server sessions.
    pub pooling: Option<Pooling>,
    /// Connections to the server, of all its clients.
    pub connections: Option<Usage>,
    /// Advisory locks that are held on the server, in all its databases, and how many locks of any
    /// kind its table has room for. Every table that a transaction touches takes a place in it, too.
    pub locks: Option<Usage>,
    /// How long a wait lasts before the server looks for a deadlock.
    pub deadlock_timeout: Option<Duration>,
    /// The server's own limits that are in force for this role, by the names of their settings.
    pub timeouts: Vec<(String, Duration)>,
    /// What is to be said about all that.
    pub findings: Vec<Finding>,
}

impl Report {
    /// A report on a server that calls itself so, of which no more is known.
    #[must_use]
    pub fn new(server: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            role: None,
            pooling: None,
            connections: None,
            locks: None,
            deadlock_timeout: None,
            timeouts: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Adds a finding.
    pub fn add_finding(&mut self, severity: Severity, text: impl Into<String>) {
        let text = text.into();
        self.findings.push(Finding { severity, text });
    }

    /// Whether locks can be taken: whether no finding is a [`Severity::Refusal`].
    #[must_use]
    pub fn is_fit(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.all(|finding| finding.severity != Severity::Refusal)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "server       {}", self.server)?;
        if let Some(role) = self.role {
            writeln!(f, "role         {role}")?;
        }
        if let Some(pooling) = self.pooling {
            writeln!(f, "sessions     {pooling}")?;
        }
        if let Some(connections) = self.connections {
            writeln!(f, "connections  {connections} in use")?;
        }
        if let Some(Usage { used, most }) = self.locks {
            writeln!(
                f,
                "locks        {used} advisory locks held, room for about {most} locks"
            )?;
        }
        if let Some(after) = self.deadlock_timeout {
            writeln!(f, "deadlocks    looked for after {after:?}")?;
        }
        for (name, limit) in &self.timeouts {
            writeln!(f, "timeout      {name} = {limit:?}")?;
        }
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        f.write_str(if self.is_fit() {
            "Locks can be taken here."
        } else {
            "Locks are refused here."
        })
    }
}

/// Which part a server plays among those that hold the same data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// It takes writes, and its locks exclude.
    Primary,
    /// It follows a primary. Its locks are its own, and exclude nobody there.
    Standby,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Primary => "primary",
            Self::Standby => "standby",
        })
    }
}

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

/// How much of something there is, and how much of it is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Usage {
    /// How much is in use.
    pub used: u64,
    /// How much there is.
    pub most: u64,
}

impl Usage {
    /// So much out of so much.
    #[must_use]
    pub const fn new(used: u64, most: u64) -> Self {
        Self { used, most }
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.used, self.most)
    }
}

/// Something that is to be known of a server before its locks are relied on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is, and what helps.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity, self.text)
    }
}

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Nothing has to be done about it.
    Note,
    /// Locks work, but something about them is worse than it could be.
    Warning,
    /// Locks are refused: they would exclude nobody, or there is no finding out whether they would.
    Refusal,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Refusal => "refused",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_like_a_page() {
        let mut report = Report::new("PostgreSQL 15.4");
        report.role = Some(Role::Primary);
        report.connections = Some(Usage::new(12, 100));
        report.deadlock_timeout = Some(Duration::from_secs(1));
        let timeout = ("statement_timeout".to_owned(), Duration::from_secs(30));
        report.timeouts.push(timeout);
        report.add_finding(Severity::Warning, "fsync is off");
        assert!(report.is_fit());
        assert_eq!(
            report.to_string(),
            "server       PostgreSQL 15.4\n\
             role         primary\n\
             connections  12 of 100 in use\n\
             deadlocks    looked for after 1s\n\
             timeout      statement_timeout = 30s\n\
             warning: fsync is off\n\
             Locks can be taken here."
        );

        report.add_finding(Severity::Refusal, "it is a standby");
        assert!(!report.is_fit());
        assert!(
            report
                .to_string()
                .ends_with("refused: it is a standby\nLocks are refused here.")
        );
    }
}
