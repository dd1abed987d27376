use advisory_core::LockKey;

use crate::postgres::{PostgresEnv, RawClient, Server};

/// What we hold, a client in any other language finds held under the documented key.
pub(super) async fn names_are_locks_of_raw_clients(env: &PostgresEnv) {
    let locks = env.manager().await;
    let client = env.client().await;
    let lock = locks
        .namespace("tenant-a")
        .namespace("jobs")
        .named("db:migrate");
    let key = "-1540740859457476831";

    let guard = lock.lock().await.unwrap();
    assert_eq!(try_raw(&client, key).await, "f");
    guard.release().await.unwrap();
    assert_eq!(try_raw(&client, key).await, "t");
    assert!(lock.try_lock().await.unwrap().is_none());
    assert_eq!(unlock_raw(&client, key).await, "t");
    lock.with(async || ()).await.unwrap();
}

pub(super) async fn raw_keys_are_locks_of_raw_clients(env: &PostgresEnv) {
    let locks = env.manager().await;
    let client = env.client().await;
    for (key, arguments) in [
        (LockKey::BigInt(i64::MIN), "-9223372036854775808"),
        (LockKey::BigInt(-1), "-1"),
        (LockKey::BigInt(i64::MAX), "9223372036854775807"),
        (LockKey::Pair(i32::MIN, i32::MAX), "-2147483648, 2147483647"),
        (LockKey::Pair(-1, 0), "-1, 0"),
    ] {
        let guard = locks.keyed(key).lock().await.unwrap();
        assert_eq!(try_raw(&client, arguments).await, "f");
        guard.release().await.unwrap();
        assert_eq!(try_raw(&client, arguments).await, "t");
        assert!(locks.keyed(key).try_lock().await.unwrap().is_none());
        assert_eq!(unlock_raw(&client, arguments).await, "t");
    }
}

pub(super) async fn transaction_locks_meet_guards(env: &PostgresEnv) {
    let locks = env.manager().await;
    let client = env.client().await;
    let guard = locks.keyed(58).lock().await.unwrap();
    let waiting = env.spawn(async move {
        client.run("BEGIN; SELECT pg_advisory_xact_lock(58)").await;
        client
    });
    env.until_waiters(guard.key(), 1).await;
    guard.release().await.unwrap();
    let client = waiting.await;
    assert!(locks.keyed(58).try_lock().await.unwrap().is_none());
    client.run("COMMIT").await;
    locks.keyed(58).with(async || ()).await.unwrap();
}

pub(super) async fn databases_are_apart(env: &PostgresEnv) {
    let database = Server::shared().database().await;
    let here = env.manager().await;
    let there = env.manager_at(database.url()).await;

    let one = here.named("db:migrate").lock().await.unwrap();
    let other = there.named("db:migrate").try_lock().await.unwrap();
    let other = other.expect("another database is another space");
    assert!(
        there
            .named("db:migrate")
            .try_lock()
            .await
            .unwrap()
            .is_none()
    );
    one.release().await.unwrap();
    other.release().await.unwrap();
    database.remove().await;
}

async fn try_raw(client: &RawClient, arguments: &str) -> String {
    client
        .value(&format!("SELECT pg_try_advisory_lock({arguments})"))
        .await
}

async fn unlock_raw(client: &RawClient, arguments: &str) -> String {
    client
        .value(&format!("SELECT pg_advisory_unlock({arguments})"))
        .await
}
