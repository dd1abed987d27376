//! Servers that are not PostgreSQL, and poolers of other kinds than those that the suite is run
//! through. All of them are simulated: see [`Guise`].

use std::time::{Duration, Instant};

use advisory_core::{Error, LockKey, LockManager, Pooling, Result, postgres::PostgresOptions};
use futures::{FutureExt, future::BoxFuture};

use super::role::Role;
use crate::{
    postgres::{Guise, PostgresEnv},
    sync::{DEADLINE, pause},
};

const SHORT: Duration = Duration::from_millis(200);
const KEY: LockKey = LockKey::BigInt(42);

/// Whatever its functions would answer: there is PostgreSQL behind these names, and they would.
pub(super) async fn products_are_refused(env: &PostgresEnv) {
    for (version, said) in [
        (
            "CockroachDB CCL v25.2.1 (x86_64-pc-linux-gnu, built 2025/06/04 18:12:04)",
            "not PostgreSQL but CockroachDB CCL v25.2.1",
        ),
        (
            "PostgreSQL 15.12-YB-2025.1.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang",
            "not PostgreSQL but YugabyteDB",
        ),
        (
            "PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC, Redshift 1.0.12103",
            "not PostgreSQL but Amazon Redshift",
        ),
        (
            "PostgreSQL 14.4 (Apache Cloudberry 2.0.0 build 1) on x86_64-pc-linux-gnu",
            "not PostgreSQL but Apache Cloudberry",
        ),
        ("PostgreSQL 12.22 on x86_64-pc-linux-gnu", "this is 12"),
    ] {
        for options in ways_to_keep_sessions() {
            let [locks, _] = env.disguised(Guise::Product(version), options).await;
            assert_refused(
                env,
                &locks,
                |error| matches!(error, Error::Unsupported { reason, .. } if reason.contains(said)),
            )
            .await;
            let report = locks.check().await.unwrap();
            assert!(!report.is_fit(), "{report}");
            assert_eq!(report.server, version);
        }
    }
}

pub(super) async fn transaction_pooler_is_refused(env: &PostgresEnv) {
    assert_pooler_is_refused(env, Guise::TransactionPooler, Pooling::Transaction).await;
}

/// The harm that the refusal prevents.
pub(super) async fn transaction_pooler_gives_trusted_locks_to_two(env: &PostgresEnv) {
    let options = PostgresOptions::new().trust_session_pooling();
    let [one, other] = env.disguised(Guise::TransactionPooler, options).await;
    let first = one.keyed(KEY).lock().await.unwrap();
    let second = other.keyed(KEY).try_lock().await.unwrap();
    let second = second.expect("a session re-enters its locks, and both have the same");
    assert_eq!(env.holders(KEY).await.len(), 1);
    first.release().await.unwrap();
    second.release().await.unwrap();
    assert_eq!(env.held().await, []);
}

pub(super) async fn transaction_pooler_keeps_pinned_locks(env: &PostgresEnv) {
    assert_pinned_locks_exclude(env, Guise::TransactionPooler, Pooling::Transaction).await;
}

pub(super) async fn resetting_pooler_is_refused(env: &PostgresEnv) {
    assert_pooler_is_refused(env, Guise::ResettingPooler, Pooling::Reset).await;
}

/// The harm that the refusal prevents. It is seen by the release at the latest.
pub(super) async fn resetting_pooler_gives_trusted_locks_to_two(env: &PostgresEnv) {
    env.expect_vain_unlocks();
    let options = PostgresOptions::new().trust_session_pooling();
    let [one, other] = env.disguised(Guise::ResettingPooler, options).await;
    let first = one.keyed(KEY).lock().await.unwrap();
    let second = other.keyed(KEY).try_lock().await.unwrap();
    let second = second.expect("the first one's lock went with the reset");
    assert_eq!(env.held().await, []);
    for guard in [first, second] {
        let released = guard.release().await;
        assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");
    }
}

/// It resets nothing inside of a transaction.
pub(super) async fn resetting_pooler_keeps_pinned_locks(env: &PostgresEnv) {
    assert_pinned_locks_exclude(env, Guise::ResettingPooler, Pooling::Reset).await;
}

/// It would keep the session, but only from the first lock on; before that it looks like any other.
pub(super) async fn pinning_proxy_is_refused(env: &PostgresEnv) {
    assert_pooler_is_refused(env, Guise::PinningProxy, Pooling::Transaction).await;
}

pub(super) async fn pinning_proxy_keeps_trusted_locks(env: &PostgresEnv) {
    let options = PostgresOptions::new().trust_session_pooling();
    let locks = env.disguised(Guise::PinningProxy, options).await;
    assert_locks_exclude(env, &locks).await;
}

pub(super) async fn pinning_proxy_keeps_pinned_locks(env: &PostgresEnv) {
    assert_pinned_locks_exclude(env, Guise::PinningProxy, Pooling::Transaction).await;
}

/// Where there is none, the error says how to spare it; and it is not the last word.
///
/// Connections that have been closed count until the server has noticed, so each step may need several
/// attempts.
pub(super) async fn look_needs_room_for_two(env: &PostgresEnv) {
    env.expect_in_log("too many connections for role");
    let role = Role::create(env).await;
    let locks = env.manager_at(role.url()).await;
    let says_so = |text: String| text.contains("trust_session_pooling");

    role.limit_connections(env, 1).await;
    let refused = async || {
        let refused = locks.keyed(KEY).lock().await;
        matches!(refused, Err(Error::Backend(cause)) if says_so(cause.to_string()))
    };
    eventually(|| refused().boxed()).await;

    // One is the pool's by now.
    role.limit_connections(env, 2).await;
    let reported = async || {
        let report = locks.check().await;
        report.is_ok_and(|report| !report.is_fit() && says_so(report.to_string()))
    };
    eventually(|| reported().boxed()).await;

    role.limit_connections(env, 10).await;
    locks.keyed(KEY).with(async || ()).await.unwrap();
    locks.close().await.unwrap();
    role.remove(env).await;
}

async fn eventually<'a>(is_so: impl Fn() -> BoxFuture<'a, bool> + Sync) {
    let started = Instant::now();
    while !is_so().await {
        assert!(started.elapsed() <= DEADLINE, "it never comes to that");
        pause(SHORT / 10).await;
    }
}

pub(super) async fn islands_are_refused(env: &PostgresEnv) {
    let [locks, _] = env.disguised(Guise::Islands, PostgresOptions::new()).await;
    assert_refused(
        env,
        &locks,
        |error| matches!(error, Error::Unsupported { reason, .. } if reason.contains("several")),
    )
    .await;
    let report = locks.check().await.unwrap();
    assert!(!report.is_fit(), "{report}");
}

/// The harm that the refusal prevents.
pub(super) async fn islands_give_trusted_locks_to_two(env: &PostgresEnv) {
    let options = PostgresOptions::new().trust_session_pooling();
    let [one, other] = env.disguised(Guise::Islands, options).await;
    let first = one.keyed(KEY).lock().await.unwrap();
    let second = other.keyed(KEY).try_lock().await.unwrap();
    let second = second.expect("they have different locks");
    let report = one.check().await.unwrap();
    assert!(
        report.is_fit() && report.to_string().contains("several servers"),
        "{report}"
    );
    first.release().await.unwrap();
    second.release().await.unwrap();
}

/// By a second connection, which nobody opens who does not look.
pub(super) async fn poolers_are_looked_for_once(env: &PostgresEnv) {
    let (locks, tap) = env.tapped_manager_with(3, PostgresOptions::new()).await;
    let (one, other) = (locks.keyed(1), locks.keyed(2));
    let (first, second) = futures::join!(one.with(async || ()), other.with(async || ()));
    first.unwrap();
    second.unwrap();
    assert_eq!(tap.connects(), 1);

    // A session that ended says something about the server, and nothing about poolers.
    let guard = one.lock().await.unwrap();
    env.terminate(env.holder(one.key()).await).await;
    assert!(guard.release().await.is_err());
    one.with(async || ()).await.unwrap();
    assert_eq!(tap.connects(), 1);

    for options in [
        PostgresOptions::new().trust_session_pooling(),
        PostgresOptions::new().pinned(),
    ] {
        let (locks, tap) = env.tapped_manager_with(2, options).await;
        locks.keyed(KEY).with(async || ()).await.unwrap();
        assert_eq!(tap.connects(), 0);
    }
}

/// One that has come in between, or that has escaped the first look.
pub(super) async fn poolers_are_looked_for_again_after_a_loss(env: &PostgresEnv) {
    env.expect_vain_unlocks();
    let (locks, tap) = env.tapped_manager_with(2, PostgresOptions::new()).await;
    let lock = locks.keyed(KEY);
    for looks in 1..=3 {
        lock.with(async || ()).await.unwrap();
        lock.with(async || ()).await.unwrap();
        assert_eq!(tap.connects(), looks);

        let guard = lock.lock().await.unwrap();
        tap.before_next("SELECT pg_advisory_unlock(42)");
        let released = guard.release().await;
        assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");
    }
}

fn ways_to_keep_sessions() -> [PostgresOptions; 3] {
    let options = PostgresOptions::new();
    [options, options.trust_session_pooling(), options.pinned()]
}

/// Fails unless every way to take a lock is refused like this, and leaves nothing.
pub(super) async fn assert_refused(
    env: &PostgresEnv,
    locks: &LockManager,
    as_it_should: impl Fn(&Error) -> bool + Sync,
) {
    let lock = locks.keyed(KEY);
    let mut ran = false;
    let refusals: [Result<()>; 5] = [
        lock.lock().await.map(drop),
        lock.try_lock().await.map(drop),
        lock.with(async || ran = true).await,
        lock.lock_timeout(Duration::from_secs(10)).await.map(drop),
        locks.session().await.map(drop),
    ];
    for refused in refusals {
        assert!(refused.as_ref().is_err_and(&as_it_should), "{refused:?}");
    }
    assert!(!ran);
    assert_eq!(env.held().await, []);
}

async fn assert_pooler_is_refused(env: &PostgresEnv, guise: Guise, pooling: Pooling) {
    let [locks, _] = env.disguised(guise, PostgresOptions::new()).await;
    assert_refused(env, &locks, |error| {
        matches!(error, Error::SessionNotPinned)
    })
    .await;
    let report = locks.check().await.unwrap();
    assert_eq!(report.pooling, Some(pooling));
    assert!(!report.is_fit(), "{report}");
}

async fn assert_pinned_locks_exclude(env: &PostgresEnv, guise: Guise, pooling: Pooling) {
    let locks = env.disguised(guise, PostgresOptions::new().pinned()).await;
    assert_locks_exclude(env, &locks).await;
    let report = locks[0].check().await.unwrap();
    assert_eq!(report.pooling, Some(pooling));
    assert!(report.is_fit(), "{report}");
}

/// Fails unless locks do all that they are there for, between two processes.
async fn assert_locks_exclude(env: &PostgresEnv, [one, other]: &[LockManager; 2]) {
    let (mine, theirs) = (one.keyed(KEY), other.keyed(KEY));
    for _ in 0..3 {
        let guard = mine.lock().await.unwrap();
        let session = env.holder(KEY).await;
        let earlier = guard.fencing_token().await.unwrap();
        assert!(theirs.try_lock().await.unwrap().is_none());
        let late = theirs.lock_timeout(SHORT).await;
        assert!(matches!(late, Err(Error::Timeout { .. })), "{late:?}");
        // What is taken and given back beside it moves nothing.
        other.keyed(1).with(async || ()).await.unwrap();
        assert_eq!(env.holder(KEY).await, session);
        guard.release().await.unwrap();

        let guard = theirs.lock().await.unwrap();
        assert!(guard.fencing_token().await.unwrap() > earlier);
        assert!(mine.try_lock().await.unwrap().is_none());
        guard.release().await.unwrap();
        assert_eq!(env.held().await, []);
    }
}
