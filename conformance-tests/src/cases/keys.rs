use advisory_core::{LockKey, LockManager};
use serde::Deserialize;

use crate::Env;

pub(super) async fn at_the_extremes(env: &Env) {
    let keys = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
    all_held_together(env, keys.map(LockKey::from)).await;
}

pub(super) async fn pairs_at_the_extremes(env: &Env) {
    let halves = [i32::MIN, -1, 0, 1, i32::MAX];
    let pairs = halves.map(|class| halves.map(|object| LockKey::from((class, object))));
    all_held_together(env, pairs.into_iter().flatten()).await;
}

/// Holds all keys at once, each by an owner of its own, then meets a rival on each.
async fn all_held_together(env: &Env, keys: impl IntoIterator<Item = LockKey>) {
    let mut keys: Vec<_> = keys.into_iter().collect();
    keys.sort();
    let locks = env.manager_with_pool_of(keys.len() + 1).await;
    let rival = env.manager().await;

    let mut guards = Vec::new();
    for &key in &keys {
        let guard = locks.keyed(key).try_lock().await.unwrap();
        guards.push(guard.unwrap_or_else(|| panic!("{key} is not held by anybody")));
    }
    let mut seen: Vec<_> = env.held().await.iter().map(|lock| lock.claim.key).collect();
    seen.sort();
    assert_eq!(seen, keys);

    for guard in guards {
        let key = guard.key();
        assert!(rival.keyed(key).try_lock().await.unwrap().is_none());
        guard.release().await.unwrap();
        let ran = rival.keyed(key).try_with(async || ()).await;
        assert_eq!(ran.unwrap(), Some(()), "{key} was released");
    }
    assert_eq!(env.held().await, []);
}

/// Each golden name is read back from the server, where other languages will look for it.
pub(super) async fn golden_names(env: &Env) {
    let locks = env.manager().await;
    for vector in golden() {
        let expected = LockKey::BigInt(vector.key.parse().unwrap());
        let mut namespaces = vector.namespaces.iter();
        let lock = match namespaces.next() {
            None => locks.named(&vector.name),
            Some(first) => namespaces
                .fold(locks.namespace(first), |space, name| space.namespace(name))
                .named(&vector.name),
        };
        assert_eq!(lock.key(), expected, "{vector:?}");

        let guard = lock.lock().await.unwrap();
        env.holder(expected).await;
        guard.release().await.unwrap();
    }
}

pub(super) async fn spaces_are_disjoint(env: &Env) {
    let locks = env.manager().await;
    let one = locks.keyed(4_294_967_297_i64).lock().await.unwrap();
    let other = locks.keyed((1, 1)).try_lock().await.unwrap();
    let other = other.expect("a pair is not a number");
    assert_ne!(env.holder(one.key()).await, env.holder(other.key()).await);
    one.release().await.unwrap();
    env.holder(other.key()).await;
    other.release().await.unwrap();
}

/// The two names have the same 32-bit `hashtext`, which other libraries make their keys of.
pub(super) async fn similar_names_are_apart(env: &Env) {
    let locks = env.manager().await;
    let one = locks.named("tenant:59552").lock().await.unwrap();
    let other = locks.named("tenant:99827").try_lock().await.unwrap();
    let other = other.expect("another name is another lock");
    assert_ne!(env.holder(one.key()).await, env.holder(other.key()).await);
    one.release().await.unwrap();
    other.release().await.unwrap();
}

pub(super) async fn namespaces_are_apart(env: &Env) {
    let locks = env.manager().await;
    let root = locks.named("digest").lock().await.unwrap();
    let mut guards = vec![root];
    for namespace in ["tenant-a", "tenant-b", ""] {
        let lock = locks.namespace(namespace).named("digest");
        guards.push(lock.try_lock().await.unwrap().expect("a lock of its own"));
    }
    assert_eq!(env.held().await.len(), guards.len());
    for guard in guards {
        guard.release().await.unwrap();
    }
}

pub(super) async fn order_of_namespaces_matters(env: &Env) {
    let locks = env.manager().await;
    let one = locks.namespace("a").namespace("b").named("x");
    let other = locks.namespace("b").namespace("a").named("x");
    let one = one.lock().await.unwrap();
    let other = other.try_lock().await.unwrap().expect("another namespace");
    assert_eq!(env.held().await.len(), 2);
    one.release().await.unwrap();
    other.release().await.unwrap();
}

pub(super) async fn one_name_is_one_lock(env: &Env) {
    let digest = |locks: &LockManager| {
        locks
            .namespace("tenant-a")
            .namespace("jobs")
            .named("digest")
    };
    let locks = env.manager().await;
    let rival = env.manager().await;
    let guard = digest(&locks).lock().await.unwrap();
    assert!(digest(&locks).try_lock().await.unwrap().is_none());
    assert!(digest(&rival).try_lock().await.unwrap().is_none());
    guard.release().await.unwrap();
}

#[derive(Debug, Deserialize)]
struct Golden {
    cases: Vec<Vector>,
}

#[derive(Debug, Deserialize)]
struct Vector {
    namespaces: Vec<String>,
    name: String,
    key: String,
}

fn golden() -> Vec<Vector> {
    let golden: Golden = serde_json::from_str(include_str!("../../data/key-vectors.json")).unwrap();
    assert!(!golden.cases.is_empty());
    golden.cases
}

#[test]
fn a_million_names_make_a_million_keys() {
    use std::collections::HashSet;

    let keys: HashSet<_> = (0..1_000_000)
        .map(|tenant| advisory_core::derive_key(&format!("tenant:{tenant}"), &[]))
        .collect();
    assert_eq!(keys.len(), 1_000_000);
}
