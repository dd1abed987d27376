use std::{
    fs,
    time::{Duration, UNIX_EPOCH},
};

use advisory_core::{Error, Holder, LockMode, Result, postgres::PostgresOptions};

use super::{idle, role::Role};
use crate::postgres::{PostgresEnv, Server};

const SHORT: Duration = Duration::from_millis(200);

/// Functions of the same names, earlier in the search path, that lie about everything.
pub(super) async fn shadowing_functions_have_no_effect(env: &PostgresEnv) {
    let client = env.client().await;
    client
        .run(
            "CREATE FUNCTION public.pg_try_advisory_lock(bigint) RETURNS boolean
                 LANGUAGE sql AS 'SELECT true';
             CREATE FUNCTION public.pg_try_advisory_lock(int, int) RETURNS boolean
                 LANGUAGE sql AS 'SELECT true';
             CREATE FUNCTION public.pg_try_advisory_lock_shared(bigint) RETURNS boolean
                 LANGUAGE sql AS 'SELECT true';
             CREATE FUNCTION public.pg_advisory_lock(bigint) RETURNS void
                 LANGUAGE sql AS 'SELECT';
             CREATE FUNCTION public.pg_advisory_unlock(bigint) RETURNS boolean
                 LANGUAGE sql AS 'SELECT true';
             CREATE FUNCTION public.pg_backend_pid() RETURNS integer
                 LANGUAGE sql AS 'SELECT 1';
             CREATE FUNCTION public.pg_is_in_recovery() RETURNS boolean
                 LANGUAGE sql AS 'SELECT true';
             CREATE FUNCTION public.current_setting(text) RETURNS text
                 LANGUAGE sql AS 'SELECT ''granted''';
             CREATE FUNCTION public.set_config(text, text, boolean) RETURNS text
                 LANGUAGE sql AS 'SELECT ''granted''';
             CREATE FUNCTION public.unnest(bigint[]) RETURNS SETOF bigint
                 LANGUAGE sql AS 'SELECT 0::bigint WHERE false';
             CREATE VIEW public.pg_locks AS SELECT 1 AS pid;
             CREATE DOMAIN public.int8 AS text;
             CREATE DOMAIN public.int4 AS text;",
        )
        .await;
    env.database().set("search_path = public, pg_catalog").await;

    let locks = env.manager().await;
    for lock in [locks.keyed(39), locks.keyed((3, 9))] {
        for lock in [lock.clone(), lock.shared()] {
            let guard = lock.lock().await.unwrap();
            assert_eq!(env.held().await.len(), 1);
            let rival = locks.keyed(lock.key());
            assert!(rival.try_lock().await.unwrap().is_none());
            holders(rival.lock_timeout(SHORT).await);
            guard.release().await.unwrap();
            assert_eq!(env.held().await, []);
        }
    }
    let (outer, inner) = (locks.keyed(1), locks.keyed(2));
    let nested = outer.with(async || inner.with(async || env.held().await).await);
    assert_eq!(nested.await.unwrap().unwrap().len(), 2);
    assert_eq!(env.held().await, []);
}

pub(super) async fn late_names_the_application(env: &PostgresEnv) {
    let url = env.database().url();
    let separator = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{separator}application_name=billing");
    let holder = env.manager_at(&url).await;
    let guard = holder.named("invoices").lock().await.unwrap();
    let session = env.holder(guard.key()).await;

    let late = env.manager().await.named("invoices");
    let holders = holders(late.lock_timeout(SHORT).await);
    let [found] = holders.as_slice() else {
        panic!("there is one holder: {holders:?}");
    };
    assert_eq!(found.session.number(), session);
    assert_eq!(found.application.as_deref(), Some("billing"));
    assert_eq!(found.state.as_deref(), Some(idle()));
    guard.release().await.unwrap();
}

/// Whose sessions they are, and whether they may be looked at.
pub(super) async fn check_up_counts_everybodys_connections(env: &PostgresEnv) {
    const OTHERS: usize = 5;

    close_view(env).await;
    let mut others = Vec::new();
    for _ in 0..OTHERS {
        others.push(env.client().await);
    }
    let role = Role::create(env).await;
    let locks = env.manager_at(role.url()).await;
    let report = locks.check().await.unwrap();
    let connections = report.connections.unwrap();
    assert!(connections.used > OTHERS as u64, "{report}");
    locks.close().await.unwrap();
    role.remove(env).await;
}

/// By their numbers; what else there is to be known of them is for roles that may know it.
pub(super) async fn holders_are_named_where_the_view_is_closed(env: &PostgresEnv) {
    close_view(env).await;
    let guard = env.manager().await.keyed(40).lock().await.unwrap();
    let session = env.holder(guard.key()).await;
    let role = Role::create(env).await;
    let locks = env.manager_at(role.url()).await;
    let late = locks.keyed(40).lock_timeout(SHORT).await;
    let holders = holders(late);
    assert_eq!(holders.len(), 1);
    assert_eq!(holders[0].session.number(), session);
    guard.release().await.unwrap();
    locks.close().await.unwrap();
    role.remove(env).await;
}

/// Has only superusers look at `pg_stat_activity` in the database of the case.
async fn close_view(env: &PostgresEnv) {
    let client = env.client().await;
    client
        .run("REVOKE SELECT ON pg_catalog.pg_stat_activity FROM PUBLIC")
        .await;
}

/// A session that nobody knows of any more, and that still holds the lock.
pub(super) async fn orphans_are_named(env: &PostgresEnv) {
    let orphan = env.client().await;
    orphan
        .run("SET application_name = 'orphan'; SELECT pg_advisory_lock(40)")
        .await;
    let pid = orphan.value("SELECT pg_backend_pid()").await;

    let late = env.manager().await.keyed(40).lock_timeout(SHORT).await;
    let holders = holders(late);
    assert_eq!(holders.len(), 1);
    assert_eq!(holders[0].session.to_string(), pid);
    assert_eq!(holders[0].application.as_deref(), Some("orphan"));
    assert_eq!(holders[0].state.as_deref(), Some("idle"));
    assert_eq!(holders[0].client.as_deref(), Some("127.0.0.1"));
}

/// To those who ask, without waiting for it.
pub(super) async fn orphans_are_listed(env: &PostgresEnv) {
    let orphan = env.client().await;
    orphan
        .run("SET application_name = 'orphan'; SELECT pg_advisory_lock_shared(4, 0)")
        .await;
    let pid = orphan.value("SELECT pg_backend_pid()").await;
    let lock = env.manager().await.keyed((4, 0));

    let holders = lock.holders().await.unwrap();
    let since = format!(
        "SELECT (date_part('epoch', state_change) * 1000000)::bigint
         FROM pg_stat_activity WHERE pid = {pid}"
    );
    let since = env.client().await.value(&since).await;
    let [orphan] = holders.as_slice() else {
        panic!("there is one holder: {holders:?}");
    };
    assert_eq!(orphan.session.to_string(), pid);
    assert_eq!((orphan.key, orphan.mode), (lock.key(), LockMode::Shared));
    assert_eq!(orphan.application.as_deref(), Some("orphan"));
    assert_eq!(orphan.state.as_deref(), Some("idle"));
    assert_eq!(orphan.client.as_deref(), Some("127.0.0.1"));
    assert!(!orphan.this_process);
    let seen = orphan.since.expect("a time").duration_since(UNIX_EPOCH);
    assert_eq!(seen.unwrap().as_micros().to_string(), since);

    // It reads like something that a person can act on.
    let text = orphan.to_string();
    for part in [pid.as_str(), "orphan", "idle", "127.0.0.1", "shared"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(env.manager().await.keyed(40).holders().await.unwrap(), []);
}

/// Locks of a standby exclude nobody on the primary, nor on another standby.
pub(super) async fn standby_is_refused(env: &PostgresEnv) {
    let server = Server::start(&[]);
    let database = server.database().await;
    let used = env.manager_at(database.url()).await;
    used.named("imports:run").with(async || ()).await.unwrap();

    server.stop();
    fs::write(server.folder().join("data/standby.signal"), "").unwrap();
    server.start_again();
    let client = database.client().await;
    assert_eq!(client.value("SELECT pg_is_in_recovery()").await, "t");
    // One that has never seen the server, and one that knew it as a primary.
    for locks in [env.manager_at(database.url()).await, used] {
        let lock = locks.named("imports:run");
        let mut ran = false;
        let refusals = [
            lock.lock().await.map(drop),
            lock.try_lock().await.map(drop),
            lock.with(async || ran = true).await,
            lock.lock_timeout(Duration::ZERO).await.map(drop),
        ];
        for refused in refusals {
            assert!(matches!(refused, Err(Error::NotPrimary)), "{refused:?}");
        }
        assert!(!ran);
        let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
        assert_eq!(client.value(held).await, "0");
    }
    database.assert_log_is_clean();
}

/// What they have not confirmed is forgotten if one of them is promoted, and could be given out again.
pub(super) async fn standbys_confirm_pinned_tokens(env: &PostgresEnv) {
    let standbys = "synchronous_standby_names";
    // Nothing but a token waits for the one that is not there.
    let server = Server::start(&[(standbys, "absent"), ("synchronous_commit", "local")]);
    let database = server.database().await;
    let pinned = PostgresOptions::new().pinned();
    let locks = env.manager_with(database.url(), pinned).await;
    let guard = locks.named("imports:run").lock().await.unwrap();
    let unconfirmed = guard.fencing_token().await;
    assert!(
        matches!(unconfirmed, Err(Error::Backend(_))),
        "{unconfirmed:?}"
    );
    server.set(standbys, "").await;
    guard.fencing_token().await.unwrap();
    guard.release().await.unwrap();
    database.assert_log_is_clean();
}

/// Who a wait that timed out says holds the lock.
fn holders<T: std::fmt::Debug>(result: Result<T>) -> Vec<Holder> {
    match result {
        Err(Error::Timeout { holders, .. }) => holders,
        other => panic!("should have timed out: {other:?}"),
    }
}
