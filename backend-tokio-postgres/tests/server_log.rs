//! What the server's log has to say about our statements.

use std::time::Duration;

use advisory_backend_tokio_postgres::TokioPostgresBackend;
use advisory_conformance_tests::postgres::{Server, left_out, options};
use advisory_core::{
    Error, LockBackend, LockKey, LockManager, LockMode,
    spi::{Claim, Request, Turn, Waited},
};
use tokio_postgres::{Config, NoTls};

const SOON: Duration = Duration::from_millis(300);

async fn locks(server: &Server) -> LockManager {
    let backend = TokioPostgresBackend::connect(&server.url()).await.unwrap();
    LockManager::new(backend.with_options(options()))
}

/// The statements that the server has run for the library so far.
fn statements(server: &Server) -> Vec<String> {
    let of_ours = |line: &&str| line.contains(" advisory: LOG:  execute ");
    let log = server.log();
    log.lines().filter(of_ours).map(str::to_owned).collect()
}

#[tokio::test]
async fn an_uncontended_section_is_two_statements() {
    if left_out("server_log::an_uncontended_section_is_two_statements") {
        return;
    }
    let server = Server::start(&[("log_statement", "all")]);
    let locks = locks(&server).await;
    locks.named("warm-up").with(async || ()).await.unwrap();

    let before = statements(&server).len();
    for tenant in 0..10 {
        locks
            .named(format!("tenant:{tenant}"))
            .with(async || ())
            .await
            .unwrap();
    }
    let statements = statements(&server).split_off(before);
    assert_eq!(statements.len(), 20, "{statements:#?}");
}

#[tokio::test]
async fn waits_that_time_out_are_not_logged() {
    let server = Server::start(&[]);
    let holder = locks(&server).await;
    let waiter = locks(&server).await;
    for shared in [false, true] {
        let held = holder.keyed((7, 1));
        let held = if shared { held.shared() } else { held };
        let guard = held.lock().await.unwrap();
        let late = waiter.keyed((7, 1)).lock_timeout(SOON).await;
        assert!(matches!(late, Err(Error::Timeout { .. })));
        guard.release().await.unwrap();
    }
    let log = server.log();
    for level in ["WARNING:", "ERROR:", "FATAL:", "PANIC:"] {
        assert!(!log.contains(level), "{log}");
    }
}

/// The fall-back cannot keep its timeouts out of the log, but must tell the same.
#[tokio::test]
async fn a_role_without_plpgsql_waits_all_the_same() {
    let server = Server::start(&[]);
    let admin = server.client().await;
    admin.run("CREATE ROLE plain LOGIN").await;
    admin
        .run("REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC")
        .await;
    let mut config: Config = server.url().parse().expect("a URL of the fixture");
    config.user("plain");
    let backend = TokioPostgresBackend::connect_with(config, NoTls)
        .await
        .unwrap()
        .with_options(options());

    for key in [LockKey::BigInt(-7), LockKey::Pair(7, -7)] {
        let exclusive = Claim {
            key,
            mode: LockMode::Exclusive,
        };
        let shared = Claim {
            key,
            mode: LockMode::Shared,
        };
        let mut holder = backend.open().await.unwrap();
        let mut waiter = backend.open().await.unwrap();
        let turn = Turn::first(Some(SOON));
        for (held, behind_readers) in [(exclusive, false), (shared, true)] {
            holder.submit(&[Request::TryLock(held)]).await.unwrap();
            let waited = waiter.wait(exclusive, turn).await.unwrap();
            assert_eq!(waited, Waited::TurnOver { behind_readers });
            holder.submit(&[Request::Unlock(held)]).await.unwrap();
        }
        assert_eq!(waiter.wait(exclusive, turn).await.unwrap(), Waited::Granted);
        let unlocked = waiter.submit(&[Request::Unlock(exclusive)]).await.unwrap();
        assert_eq!(unlocked, [true]);
    }
    assert!(
        server.log().contains("due to lock timeout"),
        "the fall-back was not used"
    );
}
