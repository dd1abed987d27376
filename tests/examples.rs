//! The examples, run as the programs that they are. Each of them checks itself; here they have to
//! end well, and to say what they show. `nightly_cleanup` is in `processes.rs`.

mod common;

use std::{fs, path::Path, process::Output};

use advisory_conformance_tests::postgres::Server;
use futures::executor::block_on;

#[test]
fn axum_handler() {
    let output = run("axum_handler", None);
    let logged = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = said(output);
    let lines: Vec<_> = said.lines().collect();
    let [busy, made, late, updated] = lines[..] else {
        panic!("{said}");
    };
    assert!(
        busy.starts_with("POST /reports/may: 409 Conflict: "),
        "{said}"
    );
    assert_eq!(made, "POST /reports/may: 200 OK: made");
    assert_eq!(
        late,
        "POST /documents/7: 503 Service Unavailable: busy, try again later"
    );
    // Who holds it is for the log alone.
    assert!(
        logged.starts_with("lock \"document:7\": timed out after "),
        "{logged}"
    );
    assert!(
        logged.contains(" waiting for the lock; held by session "),
        "{logged}"
    );
    assert_eq!(updated, "POST /documents/7: 200 OK: updated");
}

#[test]
fn doctor() {
    let said = said_on_postgresql("doctor");
    for line in [
        "server       PostgreSQL ",
        "role         primary",
        "sessions     each connection keeps its server session",
        "deadlocks    looked for after 1s",
    ] {
        assert!(said.lines().any(|said| said.starts_with(line)), "{said}");
    }
    assert!(said.ends_with("\nLocks can be taken here.\n"), "{said}");
}

#[test]
fn fencing() {
    assert_eq!(
        said_on_postgresql("fencing"),
        "the first replica has the lock, and writes 1 row\n\
         the first replica is frozen, and its connection ends\n\
         the second replica takes over, and writes 1 row\n\
         the first replica wakes up, and writes 0 rows\n\
         the first replica is told: lock \"report:7\": the lock was lost: its session has ended\n"
    );
}

#[test]
fn hooks() {
    assert_eq!(
        said_in_memory("hooks"),
        "there: skipped, the job runs here\n\
         here: failed, the file is broken\n\
         there: ran\n"
    );
}

#[test]
fn library_author() {
    assert_eq!(
        said_in_memory("library_author"),
        "sent: welcome\n\
         sent: your invoice\n\
         The outbox cleaned up while the application held its own lock `cleanup`.\n"
    );
}

#[test]
fn shards_in_memory() {
    assert_each_shard_has_a_worker(&said_in_memory("shards"));
}

#[test]
fn shards_on_postgresql() {
    assert_each_shard_has_a_worker(&said_on_postgresql("shards"));
}

#[test]
fn sqlx_pool() {
    assert_three_of_five_bought(&said_on_postgresql("sqlx_pool"));
}

#[test]
fn tokio_postgres_pool() {
    assert_three_of_five_bought(&said_on_postgresql("tokio_postgres_pool"));
}

#[test]
fn xact_lock_sqlx() {
    assert_both_locks_met(&said_on_postgresql("xact_lock_sqlx"));
}

#[test]
fn xact_lock_tokio_postgres() {
    assert_both_locks_met(&said_on_postgresql("xact_lock_tokio_postgres"));
}

#[test]
fn without_a_server_those_that_need_one_say_so() {
    for name in [
        "doctor",
        "fencing",
        "sqlx_pool",
        "tokio_postgres_pool",
        "xact_lock_sqlx",
        "xact_lock_tokio_postgres",
    ] {
        let output = run(name, None);
        assert!(!output.status.success(), "{name}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains("needs a server: DATABASE_URL="),
            "{name}: {said}"
        );
    }
}

#[test]
fn the_readme_lists_every_example_and_nothing_else() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut there: Vec<_> = fs::read_dir(&folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.is_dir() || path.extension().is_some_and(|it| it == "rs"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    let readme = fs::read_to_string(folder.join("README.md")).expect("it is there");
    let mut listed: Vec<_> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| [`")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    there.sort();
    listed.sort();
    assert_eq!(there, listed);
}

fn assert_each_shard_has_a_worker(said: &str) {
    let lines: Vec<_> = said.lines().collect();
    let [shards @ .., "", end] = &lines[..] else {
        panic!("{said}");
    };
    assert_eq!(shards.len(), 8, "{said}");
    for (number, shard) in shards.iter().enumerate() {
        assert!(
            shard.starts_with(&format!("shard {number}: worker ")),
            "{said}"
        );
    }
    for worker in 0..3 {
        assert!(said.contains(&format!(": worker {worker}\n")), "{said}");
    }
    assert_eq!(*end, "3 workers processed 8 shards, each of them once.");
}

fn assert_three_of_five_bought(said: &str) {
    assert_eq!(said.matches(" bought a pencil\n").count(), 3, "{said}");
    assert_eq!(said.matches(" came too late\n").count(), 2, "{said}");
    assert!(said.ends_with("\nOf 3 pencils 3 were sold.\n"), "{said}");
}

fn assert_both_locks_met(said: &str) {
    assert_eq!(
        said,
        "the section runs, the transaction waits\n\
         the section has ended, the transaction ran\n\
         the transaction runs, the section is skipped\n\
         the transaction has ended, the section ran\n"
    );
}

fn said_in_memory(name: &str) -> String {
    said(run(name, None))
}

/// As the example runs on a database of its own.
fn said_on_postgresql(name: &str) -> String {
    block_on(async {
        let database = Server::shared().database().await;
        let output = run(name, Some(database.url_without_pins()));
        database.remove().await;
        said(output)
    })
}

fn run(name: &str, database_url: Option<&str>) -> Output {
    let mut example = common::example(name);
    match database_url {
        Some(url) => example.env("DATABASE_URL", url),
        None => example.env_remove("DATABASE_URL"),
    };
    example.output().expect("the example starts")
}

/// What a program has said that ended well.
fn said(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}
