use std::{env, time::Duration};

use advisory_conformance_tests::postgres::{RawClient, Server};

use crate::rivals::{Entry, Place};

/// What all workloads share.
pub(crate) struct Bench {
    server: Server,
    /// How often each measurement is made.
    pub(crate) rounds: usize,
    /// How long one takes.
    pub(crate) time: Duration,
    /// Which rivals take part: those whose names contain this.
    rivals: String,
}

impl Bench {
    pub(crate) fn start() -> Self {
        let milliseconds = knob("ADVISORY_BENCH_MILLISECONDS").unwrap_or(500);
        Self {
            server: Server::start(&[("fsync", "on"), ("max_connections", "500")]),
            rounds: knob("ADVISORY_BENCH_ROUNDS").unwrap_or(5).max(1),
            time: Duration::from_millis(milliseconds as u64),
            rivals: env::var("ADVISORY_BENCH_RIVALS").unwrap_or_default(),
        }
    }

    /// Those of the rivals that are to take part.
    pub(crate) fn asked_for<'a>(&self, entries: &'a [Entry]) -> impl Iterator<Item = &'a Entry> {
        let asked_for = |entry: &&Entry| entry.name.contains(&self.rivals);
        entries.iter().filter(asked_for)
    }

    /// A place on the server for one task, with a pool that is big enough.
    pub(crate) fn place(&self, application_name: &str) -> Place {
        Place {
            url: self.server.url(),
            application_name: application_name.to_owned(),
            connections: 4,
            for_locks: None,
            contended: false,
        }
    }

    /// Ends all connections of this name; how many there were.
    ///
    /// A rival that has stalled would not end them, and leave locks behind for the next one.
    pub(crate) async fn end_connections(&self, application_name: &str) -> String {
        let observer = self.observer().await;
        observer
            .value(&format!(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                 WHERE application_name = '{application_name}'"
            ))
            .await
    }

    /// A connection that takes no part in the contest.
    pub(crate) async fn observer(&self) -> RawClient {
        self.server.client().await
    }
}

pub(crate) fn knob(name: &str) -> Option<usize> {
    let text = env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}
