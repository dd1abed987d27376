use std::{env, time::Duration};

use advisory_conformance_tests::postgres::{RawClient, Server};

use crate::rivals::Place;

/// What all workloads share.
pub(crate) struct Bench {
    server: Server,
    /// How often each measurement is made.
    pub(crate) rounds: usize,
    /// How long one takes.
    pub(crate) time: Duration,
}

impl Bench {
    pub(crate) fn start() -> Self {
        let milliseconds = knob("ADVISORY_BENCH_MILLISECONDS", 500);
        Self {
            server: Server::start(&[("fsync", "on"), ("max_connections", "500")]),
            rounds: knob("ADVISORY_BENCH_ROUNDS", 5).max(1),
            time: Duration::from_millis(milliseconds as u64),
        }
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

    /// How many connections go by this name.
    pub(crate) async fn connections(&self, application_name: &str) -> String {
        let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name";
        let observer = self.observer().await;
        observer
            .value(&format!("{count} = '{application_name}'"))
            .await
    }

    /// A connection that takes no part in the contest.
    pub(crate) async fn observer(&self) -> RawClient {
        self.server.client().await
    }
}

fn knob(name: &str, default: usize) -> usize {
    match env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text}")),
        Err(_) => default,
    }
}
