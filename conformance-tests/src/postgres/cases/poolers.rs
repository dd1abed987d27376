//! What a pooler does to locks, and what is done about it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use advisory_core::{
    Error, LockManager, Pooling,
    postgres::{PostgresOptions, Value},
};
use futures::future::{Either, select};

use super::{impostors, repeats};
use crate::{
    postgres::{PoolMode, Pooler, PostgresEnv, Server},
    sync::pause,
};

const NAME: &str = "imports:run";

/// With one session to lend it lets the second client wait, with two it takes another for it, and
/// with many it lends them the same by turns.
pub(super) async fn transaction_mode_is_refused(env: &PostgresEnv) {
    for size in ["1", "2", "20"] {
        let pooler = before(PoolMode::Transaction, size);
        let locks = manager(env, &pooler, PostgresOptions::new()).await;
        assert_refused(env, &locks).await;
    }
}

pub(super) async fn transaction_mode_works_when_pinned(env: &PostgresEnv) {
    let pooler = before(PoolMode::Transaction, "4");
    let one = manager(env, &pooler, PostgresOptions::new().pinned()).await;
    let other = manager(env, &pooler, PostgresOptions::new().pinned()).await;
    assert_they_exclude(env, &one, &other).await;
    // What is not pinned meets them all the same, on the server itself.
    assert_they_exclude(env, &env.manager().await, &other).await;

    let report = one.check().await.unwrap();
    assert_eq!(report.pooling, Some(Pooling::Transaction));
    assert!(report.is_fit(), "{report}");
}

pub(super) async fn session_mode_works(env: &PostgresEnv) {
    let pooler = before(PoolMode::Session, "8");
    let one = manager(env, &pooler, PostgresOptions::new()).await;
    let other = manager(env, &pooler, PostgresOptions::new()).await;
    assert_they_exclude(env, &one, &other).await;
    let pinned = manager(env, &pooler, PostgresOptions::new().pinned()).await;
    assert_they_exclude(env, &one, &pinned).await;

    let report = one.check().await.unwrap();
    assert_eq!(report.pooling, Some(Pooling::Session));
    assert!(report.is_fit(), "{report}");
}

/// A client that goes leaves its lock to whoever has the server session next. With what `PgBouncer` has
/// by default it does not: [`session_mode_works`].
pub(super) async fn session_mode_without_reset_is_refused(env: &PostgresEnv) {
    let pooler = Pooler::start(
        Server::shared(),
        PoolMode::Session,
        &[("server_reset_query", "")],
    );
    let options = PostgresOptions::new().session_within(Duration::from_secs(4));
    let locks = manager(env, &pooler, options).await;
    for _ in 0..2 {
        let refused = locks.named(NAME).try_lock().await;
        assert!(
            matches!(&refused, Err(Error::Unsupported { reason, .. }) if reason.contains("outlives")),
            "{refused:?}"
        );
    }
    // What shows it is left behind once, however often it is looked for.
    assert_eq!(env.held().await.len(), 1);

    let trusting = manager(env, &pooler, options.trust_session_pooling()).await;
    for (locks, is_fit) in [(&locks, false), (&trusting, true)] {
        let report = locks.check().await.unwrap();
        assert_eq!(report.pooling, Some(Pooling::Session));
        assert_eq!(report.is_fit(), is_fit, "{report}");
        assert!(
            report.to_string().contains("server_reset_query"),
            "{report}"
        );
    }

    // A client that goes within a transaction takes the server session with it.
    let pinned = manager(env, &pooler, options.pinned()).await;
    let report = pinned.check().await.unwrap();
    assert!(
        report.is_fit() && !report.to_string().contains("outlives"),
        "{report}"
    );
}

pub(super) async fn statement_mode_is_refused(env: &PostgresEnv) {
    let pooler = before(PoolMode::Statement, "4");
    for options in [PostgresOptions::new(), PostgresOptions::new().pinned()] {
        let locks = manager(env, &pooler, options).await;
        assert_refused(env, &locks).await;
        let report = locks.check().await.unwrap();
        assert_eq!(report.pooling, Some(Pooling::Statement));
        assert!(!report.is_fit(), "{report}");
    }
}

/// What it is refused for.
pub(super) async fn two_own_a_lock_where_nobody_looks(env: &PostgresEnv) {
    let pooler = before(PoolMode::Transaction, "1");
    let trusting = PostgresOptions::new().trust_session_pooling();
    let one = manager(env, &pooler, trusting).await;
    let other = manager(env, &pooler, trusting).await;
    let guard = one.named(NAME).try_lock().await.unwrap();
    assert!(guard.is_some());
    env.expect_in_log("prepared statement");
    match other.named(NAME).try_lock().await {
        // They are the same session to the server.
        Ok(second) => assert!(second.is_some() && env.held().await.len() == 1),
        // A driver that names its statements alike on all connections may find the other's in its
        // way. That is luck: poolers that know of statements keep the names apart.
        Err(error) => assert!(matches!(error, Error::SessionNotPinned), "{error:?}"),
    }
}

/// Not every pooler that is in session mode can show it.
pub(super) async fn a_session_to_spare_is_needed_to_look(env: &PostgresEnv) {
    let pooler = before(PoolMode::Session, "1");
    let options = PostgresOptions::new().session_within(Duration::from_secs(2));
    let locks = manager(env, &pooler, options).await;
    let refused = locks.named(NAME).try_lock().await;
    assert!(
        matches!(refused, Err(Error::PoolExhausted { .. })),
        "{refused:?}"
    );
    // Its connection has the one session that there is.
    drop((refused, locks));
    let options = options.trust_session_pooling();
    let locks = manager(env, &pooler, options).await;
    locks.named(NAME).with(async || ()).await.unwrap();
}

/// No statement is looked for on a session that it was not prepared on.
pub(super) async fn pinned_clients_take_turns(env: &PostgresEnv) {
    const CLIENTS: usize = 4;

    let pooler = before(PoolMode::Transaction, "3");
    let inside = Arc::new(AtomicUsize::new(0));
    let mut clients = Vec::new();
    for client in 0..CLIENTS {
        let locks = manager(env, &pooler, PostgresOptions::new().pinned()).await;
        let inside = Arc::clone(&inside);
        clients.push(env.spawn(async move {
            for round in 0..repeats(200) / CLIENTS {
                let alone = async || {
                    assert_eq!(inside.fetch_add(1, SeqCst), 0, "two are inside");
                    locks
                        .named(format!("{client}:{round}"))
                        .with(async || ())
                        .await?;
                    inside.fetch_sub(1, SeqCst);
                    Ok::<_, Error>(())
                };
                locks.named(NAME).with(alone).await??;
            }
            Ok::<_, Error>(())
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!(env.held().await, []);
}

/// The next borrower of the connection is in no transaction, and holds nothing.
pub(super) async fn pinned_and_cancelled_leaves_no_transaction(env: &PostgresEnv) {
    let pinned = PostgresOptions::new().max_sessions(1).pinned();
    let (locks, tap) = env.tapped_manager_with(1, pinned).await;
    let lock = locks.named(NAME);
    let client = env.client().await;
    for round in 0..repeats(50) {
        let moment = Duration::from_micros(100 * (round as u64 % 40));
        let attempt = Box::pin(lock.with(async || ()));
        match select(attempt, Box::pin(pause(moment))).await {
            Either::Left((done, _)) => done.unwrap(),
            Either::Right(_) => {}
        }
        let rows = tap.borrow("SELECT pg_backend_pid()").await.unwrap();
        let [Value::Text(borrowed)] = &rows[0][..] else {
            panic!("not a process id: {rows:?}");
        };
        let state = format!("SELECT state FROM pg_stat_activity WHERE pid = {borrowed}");
        assert_eq!(client.value(&state).await, "idle");
        env.until_empty().await;
    }
}

/// A pooler with so many sessions to lend, before the server that the cases share.
fn before(mode: PoolMode, sessions: &str) -> Pooler {
    let size = ("default_pool_size", sessions);
    Pooler::start(Server::shared(), mode, &[size])
}

async fn manager(env: &PostgresEnv, pooler: &Pooler, options: PostgresOptions) -> LockManager {
    let url = pooler.url_of(env.database());
    env.manager_with(&url, options).await
}

async fn assert_refused(env: &PostgresEnv, locks: &LockManager) {
    impostors::assert_refused(env, locks, |error| matches!(error, Error::SessionNotPinned)).await;
}

async fn assert_they_exclude(env: &PostgresEnv, one: &LockManager, other: &LockManager) {
    let guard = one.named(NAME).lock().await.unwrap();
    assert_eq!(env.held().await.len(), 1);
    assert!(other.named(NAME).try_lock().await.unwrap().is_none());
    let waiting = env.spawn({
        let lock = other.named(NAME);
        async move { lock.with(async || ()).await }
    });
    env.until_waiters(guard.key(), 1).await;
    guard.release().await.unwrap();
    waiting.await.unwrap();
    assert_eq!(env.held().await, []);
}
