use std::time::{Duration, Instant};

use advisory_core::{
    Error, Result,
    spi::{Request, Turn},
};

use crate::{
    Env,
    spi::{Session, exclusive, take, try_lock, wait},
    sync::{DEADLINE, pause},
};

/// How long a driver that listens may take to hear of its connection's end.
const SOON: Duration = Duration::from_secs(5);

/// What a session can be asked.
#[derive(Clone, Copy, Debug)]
enum Call {
    TryLock,
    Unlock,
    Wait,
    Holders,
    FencingToken,
    Probe,
}

const CALLS: [Call; 6] = [
    Call::TryLock,
    Call::Unlock,
    Call::Wait,
    Call::Holders,
    Call::FencingToken,
    Call::Probe,
];

impl Call {
    async fn make(self, session: &mut Session) -> Result<()> {
        match self {
            Self::TryLock => try_lock(session, exclusive(2)).await.map(drop),
            Self::Unlock => {
                let unlock = [Request::Unlock(exclusive(1))];
                session.submit(&unlock).await.map(drop)
            }
            Self::Wait => {
                let turn = Turn::first(Some(DEADLINE));
                session.wait(exclusive(2), turn).await.map(drop)
            }
            Self::Holders => session.holders(1.into()).await.map(drop),
            Self::FencingToken => session.fencing_token().await.map(drop),
            Self::Probe => session.probe().await,
        }
    }
}

/// Nothing takes its place: another session would not hold what this one did.
pub(super) async fn are_for_good(env: &Env) {
    for first in CALLS {
        let mut session = lost(env).await;
        let failed = first.make(&mut session).await;
        assert!(failed.is_err(), "{first:?} on a lost session");
        assert!(session.is_lost(), "after {first:?}");
        for next in CALLS {
            let failed = next.make(&mut session).await;
            assert!(failed.is_err(), "{next:?} after {first:?}");
            assert!(session.is_lost(), "{next:?} after {first:?}");
        }
        assert_eq!(env.held().await, []);
    }
}

pub(super) async fn are_noticed_as_promised(env: &Env) {
    let mut session = env.session().await;
    take(&mut session, &[exclusive(1)]).await;
    session.probe().await.unwrap();
    assert!(!session.is_lost());
    env.terminate(env.holder(1.into()).await).await;

    if session.notices_loss() {
        let terminated = Instant::now();
        while !session.is_lost() {
            assert!(terminated.elapsed() <= SOON, "it notices nothing");
            pause(Duration::from_millis(5)).await;
        }
    } else {
        session.probe().await.unwrap_err();
        assert!(session.is_lost());
    }
}

pub(super) async fn end_a_wait(env: &Env) {
    let (mut session, mut holder) = (env.session().await, env.session().await);
    take(&mut session, &[exclusive(1)]).await;
    take(&mut holder, &[exclusive(2)]).await;
    let waiting = env.spawn(async move {
        assert!(!try_lock(&mut session, exclusive(2)).await.unwrap());
        (wait(&mut session, exclusive(2), true).await, session)
    });
    env.until_waiters(2.into(), 1).await;
    env.terminate(env.holder(1.into()).await).await;
    let (waited, session) = waiting.await;
    // A deadlock's victim would have kept what it held.
    assert!(
        waited.is_err() && !matches!(waited, Err(Error::Deadlock { .. })),
        "{waited:?}"
    );
    assert!(session.is_lost());
    env.until_waiters(2.into(), 0).await;
    assert_eq!(env.held().await.len(), 1);
}

pub(super) async fn are_not_lent_again(env: &Env) {
    let backend = env.backend(1).await;
    for _ in 0..3 {
        let mut session = backend.open().await.unwrap();
        take(&mut session, &[exclusive(1)]).await;
        env.terminate(env.holder(1.into()).await).await;
        session.probe().await.unwrap_err();
        session.recycle().await;
    }
}

/// A session that held a lock, and has been ended by force.
async fn lost(env: &Env) -> Session {
    let mut session = env.session().await;
    take(&mut session, &[exclusive(1)]).await;
    env.terminate(env.holder(1.into()).await).await;
    session
}
