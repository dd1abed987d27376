use std::{
    future::pending,
    pin::pin,
    time::{Duration, Instant},
};

use advisory_core::{Error, OnLoss, Section, Session};
use futures::future::{Either, select};

use crate::{
    Env,
    outcome::lost,
    sync::{DEADLINE, Gate, pause},
};

pub(super) async fn stops_a_section(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    let running = Gate::default();
    let dropped = Gate::default();
    let section = lock.with(async || {
        let _on_drop = OpenOnDrop(&dropped);
        running.open();
        pending::<()>().await;
    });
    let (result, ()) = futures::join!(section, async {
        running.passed().await;
        env.terminate(env.holder(lock.key()).await).await;
    });
    assert_eq!(lost(result), Section::Stopped);
    assert!(dropped.is_open());
    lock.with(async || ()).await.unwrap();
}

pub(super) async fn stops_what_is_nested(env: &Env) {
    let locks = env.manager().await;
    let (outer, inner) = (locks.named("outer"), locks.named("inner"));
    let running = Gate::default();
    let section = outer.with(async || {
        let nested = inner.with(async || {
            running.open();
            pending::<()>().await;
        });
        nested.await
    });
    let (result, ()) = futures::join!(section, async {
        running.passed().await;
        env.terminate(env.holder(outer.key()).await).await;
    });
    // If the inner section sees it first, the outer one may end by itself, and is told then.
    let end = lost(result);
    assert!(end == Section::Stopped || end == Section::Completed);
    assert_eq!(env.held().await, []);
}

pub(super) async fn stops_a_scope(env: &Env) {
    let locks = env.manager().await;
    let session = locks.session().await.unwrap();
    let guard = session.lock(&locks.named("imports:run")).await.unwrap();
    let holder = env.holder(guard.key()).await;
    let (result, ()) = futures::join!(session.scope(pending::<()>()), env.terminate(holder));
    assert_eq!(lost(result), Section::Stopped);
    assert!(session.is_lost() && guard.is_lost());
}

pub(super) async fn lets_a_section_go_on_that_wants_to(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    let lock = lock.on_loss(OnLoss::Continue);
    let mut went_on = false;
    let section = lock.with(async || {
        let lost = Session::current().unwrap().lost();
        env.terminate(env.holder(lock.key()).await).await;
        lost.await;
        pause(Duration::from_millis(50)).await;
        went_on = true;
    });
    assert_eq!(lost(section.await), Section::Completed);
    assert!(went_on);
}

pub(super) async fn tells_whoever_has_a_guard(env: &Env) {
    let lock = env.manager().await.named("imports:run");
    let guard = lock.lock().await.unwrap();
    let watch = guard.lost();
    let holder = env.holder(lock.key()).await;
    let started = Instant::now();
    let (told, ()) = futures::join!(watch, env.terminate(holder));
    assert!(matches!(told, Error::Lost { .. }), "{told:?}");
    assert!(started.elapsed() < DEADLINE);

    // Once it is known it is told at once, before and after the release.
    assert!(guard.is_lost());
    let late = guard.lost();
    assert!(matches!(guard.lost().await, Error::Lost { .. }));
    lost(guard.release().await);
    assert!(matches!(late.await, Error::Lost { .. }));
}

pub(super) async fn is_silent_after_a_release(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let lock = locks.named("imports:run");
    let guard = lock.lock().await.unwrap();
    let watch = guard.lost();
    let released = async {
        pause(Duration::from_millis(20)).await;
        guard.release().await.unwrap();
        pause(Duration::from_millis(1200)).await;
    };
    match select(pin!(watch), pin!(released)).await {
        Either::Left((told, _)) => panic!("nothing was lost: {told:?}"),
        Either::Right(_) => {}
    }
    // The watch has not kept the connection from its pool.
    lock.with(async || ()).await.unwrap();
}

pub(super) async fn does_not_disturb_a_long_section(env: &Env) {
    let locks = env.manager_with_pool_of(1).await;
    let lock = locks.named("imports:run");
    let ran = lock
        .with(async || {
            let session = env.holder(lock.key()).await;
            pause(Duration::from_millis(2500)).await;
            locks.named("nested").with(async || ()).await.unwrap();
            assert_eq!(env.holder(lock.key()).await, session);
        })
        .await;
    ran.unwrap();
    assert_eq!(env.held().await, []);
}

struct OpenOnDrop<'a>(&'a Gate);

impl Drop for OpenOnDrop<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}
