//! What it costs to see a loss, by the server's own account.

use std::time::{Duration, Instant};

use advisory_core::Options;

use super::{LossEnv, NAME};
use crate::{
    postgres::{Database, Server, client::APPLICATION_NAME, left_out::sessions_end},
    sync::pause,
};

/// Watching adds nothing to the two statements of a section: one takes the lock, one frees it.
///
/// sqlx tests a connection at each checkout and return by a message that is no statement.
pub(super) async fn of_a_short_section_is_nothing(env: &LossEnv) {
    const SECTIONS: usize = 10;

    let server = logging();
    let database = server.database().await;
    // One connection, so that none is new.
    let locks = env.manager_of(database.url(), 1, Options::new()).await;
    locks.named("warm").with(async || ()).await.unwrap();
    let before = statements(&server, &database).len();
    assert!(before >= 2, "they are counted");

    for tenant in 0..SECTIONS {
        let lock = locks.named(format!("tenant:{tenant}"));
        // One that never waits is over before anybody looks after it.
        let work = async || pause(Duration::from_millis(1)).await;
        lock.with(work).await.unwrap();
    }
    let statements = statements(&server, &database).split_off(before);
    assert_eq!(statements.len(), 2 * SECTIONS, "{statements:#?}");
}

/// They need no snapshot, so they are in nobody's way: not in that of an index build, nor of
/// vacuum.
pub(super) async fn of_a_long_section_is_empty_statements(env: &LossEnv) {
    const LONG: Duration = Duration::from_millis(2500);

    let server = logging();
    let database = server.database().await;
    let client = database.client().await;
    // Either bound has its session probed every half second: this one if the driver notices that a
    // connection closes, and else the other.
    let options = Options::new().silence_seen_within(Duration::from_millis(1250));
    let locks = env.manager_with(database.url(), options).await;
    let lock = locks.named(NAME);
    let section = lock.with(async || {
        let before = statements(&server, &database).len();
        let started = Instant::now();
        while started.elapsed() < LONG {
            let seen = client.rows(SESSION).await;
            assert_eq!(seen.len(), 1, "it holds no snapshot: {seen:?}");
            pause(Duration::from_millis(20)).await;
        }
        statements(&server, &database).split_off(before)
    });
    let sent = section.await.unwrap();
    let empty = |statement: &String| statement == "statement:";
    assert!(sent.iter().all(empty), "{sent:#?}");
    assert!((2..=5).contains(&sent.len()), "{sent:#?}");
}

/// The holder's session, if it is idle, in pinned mode inside its transaction, and holds no snapshot.
/// If it is not idle it must be with an empty statement.
const SESSION: &str = "SELECT a.pid, a.state, a.query
    FROM pg_stat_activity AS a JOIN pg_locks AS l ON l.pid = a.pid AND l.locktype = 'advisory'
    WHERE a.backend_xmin IS NULL AND a.backend_xid IS NULL
      AND (a.state IN ('idle', 'idle in transaction') OR a.state = 'active' AND a.query = '')";

/// What a pooler sends on a session that its client has left, whenever it comes to that.
const RESET: &str = "statement: DISCARD ALL";

/// A server that logs every statement.
fn logging() -> Server {
    Server::start(&[("log_statement", "all"), ("log_line_prefix", "%d %a: ")])
}

/// The statements that it has run for the library, of whatever kind.
fn statements(server: &Server, database: &Database) -> Vec<String> {
    let log = server.log();
    let lines = log.lines();
    lines
        .filter_map(|line| line.strip_prefix(database.name()))
        .filter_map(|line| line.split_once(": LOG:  "))
        .filter(|(application, _)| application.trim() != APPLICATION_NAME)
        .map(|(_, statement)| statement.trim_end().to_owned())
        .filter(|statement| sessions_end() || statement != RESET)
        .collect()
}
