//! Replicas that are processes: the example `nightly_cleanup` as a whole, and its replicas one by
//! one, with a look at the server while one of them has the lock.

mod common;

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Output, Stdio},
};

use advisory::{LockKey, derive_key};
use advisory_conformance_tests::postgres::{RawClient, Server};
use futures::executor::block_on;

const NIGHTS: usize = 20;

#[test]
fn of_two_processes_one_runs_the_section_and_the_other_skips_it() {
    block_on(async {
        let database = Server::shared().database().await;
        let observer = database.client().await;
        let key = derive_key("nightly-cleanup", &[]);

        for night in 1..=NIGHTS {
            let mut replicas = [
                replica(database.url_without_pins()),
                replica(database.url_without_pins()),
            ];
            let mut outcomes = replicas.each_mut().map(outcome);
            outcomes.sort();
            assert_eq!(outcomes, ["ran", "skipped"], "night {night}");

            // Both have tried, and the winner waits for its input to end.
            assert_eq!(held(&observer).await, [key], "night {night}");
            for mut replica in replicas {
                let status = replica.wait().expect("the replica ends");
                assert!(status.success(), "night {night}: {status}");
            }
            assert_eq!(held(&observer).await, [], "night {night}");
        }
        database.remove().await;
    });
}

#[test]
fn the_example_runs_in_memory() {
    let output = example()
        .arg(NIGHTS.to_string())
        .env_remove("DATABASE_URL")
        .output();
    assert_one_ran_each_night(&output.expect("the example starts"));
}

#[test]
fn the_example_runs_on_postgresql() {
    block_on(async {
        let database = Server::shared().database().await;
        let output = example()
            .arg(NIGHTS.to_string())
            .env("DATABASE_URL", database.url_without_pins())
            .output();
        assert_one_ran_each_night(&output.expect("the example starts"));
        database.remove().await;
    });
}

fn assert_one_ran_each_night(output: &Output) {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let nights: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("night "))
        .collect();
    assert_eq!(nights.len(), NIGHTS, "{text}");
    for night in nights {
        assert_eq!(night.matches("ran").count(), 1, "{night}");
        assert_eq!(night.matches("skipped").count(), 2, "{night}");
    }
}

/// One replica of the example, which tells what it does and, if it has the lock, keeps it until
/// its input ends.
fn replica(database_url: &str) -> Child {
    example()
        .arg("replica")
        .env("DATABASE_URL", database_url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the replica starts")
}

fn outcome(replica: &mut Child) -> String {
    let output = replica.stdout.take().expect("its output is a pipe");
    let mut line = String::new();
    BufReader::new(output)
        .read_line(&mut line)
        .expect("its output is text");
    line.trim_end().to_owned()
}

/// The keys that are locked in the database, once for each holder.
async fn held(observer: &RawClient) -> Vec<LockKey> {
    let rows = observer
        .rows(
            "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks \
             WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND database = \
             (SELECT oid FROM pg_database WHERE datname = current_database())",
        )
        .await;
    rows.into_iter()
        .flatten()
        .flatten()
        .map(|key| LockKey::BigInt(key.parse().expect("a number")))
        .collect()
}

fn example() -> Command {
    common::example("nightly_cleanup")
}
