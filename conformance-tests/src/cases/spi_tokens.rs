use advisory_core::FencingToken;

use crate::{
    Env,
    spi::{Session, exclusive, give_back, take},
};

pub(super) async fn grow_on_a_session(env: &Env) {
    let mut session = env.session().await;
    let mut newest = None;
    for _ in 0..5 {
        take(&mut session, &[exclusive(1)]).await;
        for _ in 0..2 {
            grows(&mut newest, &mut session).await;
        }
        give_back(&mut session, &[exclusive(1)]).await;
    }
}

pub(super) async fn grow_from_session_to_session(env: &Env) {
    let mut newest = None;
    let mut sessions = [env.session().await, env.session().await];
    for (key, session) in (0..).zip(&mut sessions) {
        take(session, &[exclusive(key)]).await;
    }
    for _ in 0..3 {
        for session in &mut sessions {
            grows(&mut newest, session).await;
        }
    }
    // What a connection was used for before does not matter, nor what it is used by.
    let backend = env.backend(1).await;
    for recycled in [true, true, false, false] {
        let mut session = backend.open().await.unwrap();
        take(&mut session, &[exclusive(2)]).await;
        grows(&mut newest, &mut session).await;
        grows(&mut newest, &mut sessions[0]).await;
        give_back(&mut session, &[exclusive(2)]).await;
        if recycled {
            session.recycle().await;
        }
    }
}

async fn grows(newest: &mut Option<FencingToken>, session: &mut Session) {
    let token = session.fencing_token().await.unwrap();
    assert!(*newest < Some(token), "{newest:?} came before {token:?}");
    *newest = Some(token);
}
