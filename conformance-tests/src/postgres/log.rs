use std::{
    fs,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use super::{client::APPLICATION_NAME, left_out::sessions_end};

/// What the server puts in front of each line, by which the lines of a database are found.
pub(super) const LINE_PREFIX: &str = "%m [%p] %q%d %a: ";

/// The levels at which the server finds fault with something.
const COMPLAINTS: [&str; 4] = ["WARNING:", "ERROR:", "FATAL:", "PANIC:"];

/// What it says of its own accord when a test ends a session or cuts its connection, and when a
/// connection is closed in the middle of a statement, as that of a cancelled call is.
const PROVOKED: [&str; 2] = [
    "FATAL:  terminating connection due to administrator command",
    "FATAL:  connection to client lost",
];

/// What it says when a pooler opens a connection for a client that has gone meanwhile, and its test's
/// database with it, or while the server stops.
const LATE: [&str; 2] = ["FATAL:  database", "FATAL:  the database system is"];

/// The lines of a server's log that are about one database.
#[derive(Debug)]
pub(super) struct DatabaseLog {
    file: PathBuf,
    database: String,
    /// Parts of the complaints that the database's test provokes on purpose.
    expected: Mutex<Vec<&'static str>>,
}

impl DatabaseLog {
    pub(super) fn new(file: PathBuf, database: String) -> Self {
        let expected = Mutex::default();
        Self {
            file,
            database,
            expected,
        }
    }

    /// From now on a complaint that contains this text is none.
    pub(super) fn expect(&self, text: &'static str) {
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.push(text);
    }

    /// What the server has said about the sessions in the database, but for those of the raw
    /// clients: each line from its level on.
    pub(super) fn lines(&self) -> Vec<String> {
        // A server that has gone has taken its log with it.
        let log = fs::read(&self.file).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let name = format!("] {} ", self.database);
        log.lines()
            .filter_map(|line| line.split_once(&name)?.1.split_once(": "))
            .filter(|(application, _)| *application != APPLICATION_NAME)
            .map(|(_, text)| text.to_owned())
            .collect()
    }

    /// Fails if the server has found fault with anything that was not provoked.
    pub(super) fn assert_no_complaint(&self) {
        let expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let mut complaints = self.lines();
        complaints.retain(|line| {
            let late = (!sessions_end()).then_some(&LATE).into_iter().flatten();
            let mut provoked = PROVOKED.iter().chain(&*expected).chain(late);
            COMPLAINTS.iter().any(|level| line.starts_with(level))
                && !provoked.any(|text| line.contains(text))
        });
        assert!(
            complaints.is_empty(),
            "the server's log has complaints about {}: {complaints:#?}",
            self.database
        );
    }
}
