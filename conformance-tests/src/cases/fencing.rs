use advisory_core::FencingToken;

use crate::Env;

pub(super) async fn tokens_grow_from_holder_to_holder(env: &Env) {
    let managers = [env.manager().await, env.manager().await];
    let mut newest: Option<FencingToken> = None;
    for round in 0..6 {
        let lock = managers[round % 2].named("report:7");
        let guard = lock.lock().await.unwrap();
        let token = guard.fencing_token().await.unwrap();
        assert!(newest < Some(token), "{newest:?} came before {token:?}");
        newest = Some(token);
        guard.release().await.unwrap();
    }
}

pub(super) async fn tokens_grow_when_a_holder_is_lost(env: &Env) {
    let (first, second) = (env.manager().await, env.manager().await);
    let lost = first.named("report:7").lock().await.unwrap();
    let old = lost.fencing_token().await.unwrap();
    env.terminate(env.holder(lost.key()).await).await;

    let guard = second.named("report:7").lock().await.unwrap();
    let new = guard.fencing_token().await.unwrap();
    assert!(old < new, "{old:?} came before {new:?}");
    guard.release().await.unwrap();
    lost.release().await.unwrap_err();
}

pub(super) async fn one_hold_has_one_token(env: &Env) {
    let locks = env.manager().await;
    let lock = locks.named("report:7");
    let tokens = lock
        .with_guard(async |guard| {
            let first = guard.fencing_token().await.unwrap();
            let nested = lock.with_guard(async |guard| guard.fencing_token().await.unwrap());
            let other = locks.named("other");
            let of_other = other.with_guard(async |guard| guard.fencing_token().await.unwrap());
            let (nested, of_other) = (nested.await.unwrap(), of_other.await.unwrap());
            assert!(of_other > first);
            [first, nested, guard.fencing_token().await.unwrap()]
        })
        .await
        .unwrap();
    assert_eq!(tokens, [tokens[0]; 3]);

    // Nothing of it is left for the next hold of the same session.
    let session = locks.session().await.unwrap();
    let mut newest = tokens[0];
    for _ in 0..2 {
        let guard = session.lock(&lock).await.unwrap();
        let token = guard.fencing_token().await.unwrap();
        assert!(token > newest);
        newest = token;
        guard.release().await.unwrap();
    }
    session.release().await.unwrap();
}
