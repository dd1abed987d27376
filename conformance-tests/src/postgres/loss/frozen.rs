use std::{io::stdin, time::Instant};

use advisory_core::{FencingToken, LockManager, Section};
use futures::{executor::block_on, future::pending};

use super::{CLOSED_WITHIN, MARGIN};
use crate::{
    Runtime,
    outcome::lost,
    postgres::{
        Postgres, RawClient, Server, options,
        process::{Client, HOLDS, of_environment, say},
    },
    sync::DEADLINE,
};

/// What the holder says when it has written after its thaw, and when its section was stopped.
const CHANGED_NOTHING: &str = "client: changed 0 rows";
const STOPPED: &str = "client: was stopped";

const TABLE: &str =
    "CREATE TABLE report (id bigint PRIMARY KEY, value text, fence bigint NOT NULL);
    INSERT INTO report VALUES (7, 'empty', 0)";

/// A holder is frozen, loses its lock to a rival, and wakes up in the middle of its section. It
/// knows of nothing; but its write changes no row, and then its section is stopped.
pub async fn a_frozen_holder_is_fenced_off(harness: &Postgres, holder: &str) {
    let database = Server::shared().database().await;
    let table = database.client().await;
    table.run(TABLE).await;
    let options = options();
    let backend = harness.driver().backend(database.url(), 1, options).await;
    let locks = LockManager::new(backend);

    let mut holder = Client::start(None, holder, database.url(), 7, None);
    holder.until_it_says(HOLDS);
    assert_eq!(report(&table).await, "holder");
    holder.freeze();
    let killed = "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks
        WHERE locktype = 'advisory' AND database =
          (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(table.value(killed).await, "t");
    let guard = locks.keyed(7).lock_timeout(DEADLINE).await.unwrap();
    let token = guard.fencing_token().await.unwrap();
    assert_eq!(write(&table, "rival", token).await, 1);

    holder.go_on();
    holder.thaw();
    let thawed = Instant::now();
    holder.until_it_says(CHANGED_NOTHING);
    holder.until_it_says(STOPPED);
    assert!(thawed.elapsed() <= CLOSED_WITHIN + MARGIN);
    assert_eq!(report(&table).await, "rival");
    guard.release().await.unwrap();
    database.remove().await;
}

/// The holder, which is a process of its own, as [`client`](super::super::client) is.
pub fn holder(harness: &Postgres, runtime: &impl Runtime) {
    let Some((url, key)) = of_environment() else {
        return;
    };
    runtime.block_on(Box::pin(async move {
        let options = options();
        let backend = harness.driver().backend(&url, 1, options).await;
        let lock = LockManager::new(backend).keyed(key);
        let table = RawClient::connect(&url).await;
        let section = lock.with_guard(async |guard| {
            let token = guard.fencing_token().await.expect("it is held");
            assert_eq!(write(&table, "holder", token).await, 1);
            say(HOLDS);
            // What blocks its thread cannot be stopped, and has not been when it writes.
            let heard = stdin().read_line(&mut String::new());
            heard.expect("it is told when to go on");
            let changed = block_on(write(&table, "holder", token));
            say(&format!("client: changed {changed} rows"));
            pending::<()>().await;
        });
        assert_eq!(lost(section.await), Section::Stopped);
        say(STOPPED);
    }));
}

/// Writes as a holder of the lock with this token should; how many rows were changed.
async fn write(table: &RawClient, value: &str, token: FencingToken) -> usize {
    let write = format!(
        "WITH changed AS (
           UPDATE report SET value = '{value}', fence = {token}
           WHERE id = 7 AND fence <= {token} RETURNING id
         ) SELECT count(*) FROM changed"
    );
    table.value(&write).await.parse().expect("a number")
}

async fn report(table: &RawClient) -> String {
    table.value("SELECT value FROM report").await
}
