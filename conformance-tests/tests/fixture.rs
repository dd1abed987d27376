//! The throw-away server: what it is started with, how it goes on, and that it goes away.
#![cfg(feature = "postgres")]

use std::{
    env,
    path::PathBuf,
    process::{self, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use advisory_conformance_tests::postgres::{RawClient, Server};
use futures::executor::block_on;

const DEADLINE: Duration = Duration::from_secs(30);

#[test]
fn settings_are_those_asked_for() {
    let server = Server::start(&[("deadlock_timeout", "123ms"), ("application_name", "it's")]);
    block_on(async {
        let client = server.client().await;
        assert_eq!(client.value("SHOW deadlock_timeout").await, "123ms");
        assert_eq!(client.value("SHOW max_connections").await, "300");

        server.set("log_statement", "all").await;
        let later = server.client().await;
        while later.value("SHOW log_statement").await != "all" {
            thread::sleep(Duration::from_millis(10));
        }
        later.run("SELECT 'a line in the log'").await;
        assert!(server.log().contains("SELECT 'a line in the log'"));
    });
}

#[test]
fn data_survives_a_restart_and_a_crash() {
    let server = Server::start(&[]);
    block_on(async {
        let database = server.database().await;
        database
            .client()
            .await
            .run("CREATE TABLE t AS SELECT 1 AS x")
            .await;
        server.restart();
        assert_eq!(database.client().await.value("SELECT x FROM t").await, "1");
        server.crash();
        server.start_again();
        assert_eq!(database.client().await.value("SELECT x FROM t").await, "1");
        assert!(server.log().contains("was not properly shut down"));
        database.remove().await;
    });
}

#[test]
fn drop_stops_the_server_and_deletes_its_folder() {
    let server = Server::start(&[]);
    let folder = server.folder().to_owned();
    assert!(folder.join("data/postmaster.pid").exists());
    drop(server);
    assert!(!folder.exists());
}

#[test]
fn database_is_dropped_with_its_sessions() {
    block_on(async {
        let server = Server::shared();
        let database = server.database().await;
        let _session: RawClient = database.client().await;
        database.remove().await;
        let client = server.client().await;
        let name = database.name();
        let left = format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'");
        assert_eq!(client.value(&left).await, "0");
    });
}

/// A process that starts a server and is killed.
#[test]
fn kill_stops_the_server_and_deletes_its_folder() {
    if let Ok(marker) = env::var("FIXTURE_VICTIM") {
        let server = Server::start(&[]);
        std::fs::write(marker, server.folder().to_str().unwrap()).unwrap();
        loop {
            thread::park();
        }
    }
    let marker = env::temp_dir().join(format!("advisory-fixture-{}", process::id()));
    let mut victim = Command::new(env::current_exe().unwrap())
        .args(["--exact", "kill_stops_the_server_and_deletes_its_folder"])
        .env("FIXTURE_VICTIM", &marker)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let folder = until(|| {
        std::fs::read_to_string(&marker)
            .ok()
            .filter(|s| !s.is_empty())
    });
    let folder = PathBuf::from(folder);
    assert!(folder.join("data/postmaster.pid").exists());

    // SIGKILL, on Unix.
    victim.kill().unwrap();
    victim.wait().unwrap();
    until(|| (!folder.exists()).then_some(()));
    std::fs::remove_file(&marker).unwrap();
}

fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(started.elapsed() < DEADLINE, "not in time");
        thread::sleep(Duration::from_millis(20));
    }
}
