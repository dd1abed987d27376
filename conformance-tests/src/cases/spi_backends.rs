use std::time::Duration;

use advisory_core::Error;

use crate::{
    Env,
    interrupted::{Interruption, interrupted},
    spi::{exclusive, give_back, take},
    sync::{DEADLINE, within},
};

/// Long enough for a connection to be opened if it may be.
const SHORT: Duration = Duration::from_millis(300);

pub(super) async fn open_nothing_once_closed(env: &Env) {
    let (backend, other) = (env.backend(2).await, env.backend(2).await);
    let mut session = backend.open().await.unwrap();
    take(&mut session, &[exclusive(1)]).await;
    give_back(&mut session, &[exclusive(1)]).await;
    session.recycle().await;
    let unused = env.backend(2).await;
    for backend in [backend, unused] {
        backend.close().await.unwrap();
        for _ in 0..2 {
            let refused = backend.open().await;
            assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
        }
    }
    // Closed is a backend, not the space.
    let mut session = other.open().await.unwrap();
    take(&mut session, &[exclusive(1)]).await;
}

pub(super) async fn may_be_closed_twice(env: &Env) {
    for used in [false, true] {
        let backend = env.backend(2).await;
        if used {
            backend.open().await.unwrap().recycle().await;
        }
        backend.close().await.unwrap();
        backend.close().await.unwrap();
    }
}

/// Of a pool that nobody else has, nothing is left when its backend has gone.
pub(super) async fn leave_no_session_behind(env: &Env) {
    let backend = env.backend(2).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let mut sessions = [backend.open().await.unwrap(), backend.open().await.unwrap()];
        for (key, session) in (0..).zip(&mut sessions) {
            take(session, &[exclusive(key)]).await;
            ids.extend(session.id());
            give_back(session, &[exclusive(key)]).await;
        }
        for session in sessions {
            session.recycle().await;
        }
    }
    backend.close().await.unwrap();
    drop(backend);
    for id in ids {
        env.until_ended(id.number()).await;
    }
}

pub(super) async fn lend_as_many_sessions_as_they_have(env: &Env) {
    let backend = env.backend(2).await;
    let (first, second) = (backend.open().await.unwrap(), backend.open().await.unwrap());
    let mut third = backend.open();
    assert!(within(SHORT, &mut third).await.is_none(), "there are two");

    first.recycle().await;
    let third = within(DEADLINE, third).await.expect("there is one now");
    let mut fourth = backend.open();
    assert!(within(SHORT, &mut fourth).await.is_none(), "there are two");

    drop(second);
    let fourth = within(DEADLINE, fourth).await.expect("there is one now");
    for mut session in [third.unwrap(), fourth.unwrap()] {
        take(&mut session, &[exclusive(1)]).await;
        give_back(&mut session, &[exclusive(1)]).await;
    }
}

pub(super) async fn lose_no_session_to_who_stops_waiting(env: &Env) {
    let backend = env.backend(1).await;
    let mut polls = 1;
    loop {
        for interruption in [Interruption::After(polls), Interruption::Woken(polls)] {
            if let Some(session) = interrupted(backend.open(), interruption).await {
                return session.unwrap().recycle().await;
            }
            let next = within(DEADLINE, backend.open()).await;
            let mut next = next.expect("the session has come back").unwrap();
            take(&mut next, &[exclusive(1)]).await;
            // The server may take a moment to see that it was dropped.
            give_back(&mut next, &[exclusive(1)]).await;
            // What is dropped has to be opened anew, so there are polls to be interrupted.
            drop(next);
        }
        polls += 1;
    }
}
