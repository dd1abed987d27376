use std::time::{Duration, Instant};

use advisory_core::Error;

use super::{CLOSED_WITHIN, LossEnv, NAME, running::Running, within};
use crate::{
    outcome::lost,
    postgres::Server,
    sync::{DEADLINE, pause},
};

/// A standby grants nothing, until it is the primary; and of what was held on that it knows
/// nothing.
pub(super) async fn to_a_standby(env: &LossEnv) {
    let primary = Server::start(&[]);
    let standby = primary.standby();
    let old = env.manager(&primary.url()).await;
    let new = env.manager(&standby.url()).await.named(NAME);
    for _ in 0..2 {
        let refused = new.try_lock().await.map(drop);
        assert!(matches!(refused, Err(Error::NotPrimary)), "{refused:?}");
        let refused = new.lock_timeout(DEADLINE).await.map(drop);
        assert!(matches!(refused, Err(Error::NotPrimary)), "{refused:?}");
    }

    let guard = old.named("other").lock().await.unwrap();
    let told = env.spawn(guard.lost());
    let section = Running::start(env, old.named(NAME)).await;
    let token = section.token();
    until_followed(&primary, &standby).await;
    primary.crash();
    section.stopped_within(CLOSED_WITHIN).await;
    let told = within(CLOSED_WITHIN, told).await;
    assert!(matches!(told, Error::Lost { .. }), "{told:?}");
    assert!(guard.is_lost());

    standby.promote();
    // The manager that was refused before.
    let next = new.lock_timeout(DEADLINE).await.unwrap();
    assert!(next.fencing_token().await.unwrap() > token);
    next.release().await.unwrap();
    lost(guard.release().await);
}

/// Returns when the standby has all that the primary has written so far.
async fn until_followed(primary: &Server, standby: &Server) {
    let written = "SELECT pg_current_wal_flush_lsn()";
    let written = primary.client().await.value(written).await;
    let follows = format!("SELECT pg_last_wal_replay_lsn() >= '{written}'");
    let standby = standby.client().await;
    let started = Instant::now();
    while standby.value(&follows).await != "t" {
        assert!(started.elapsed() <= DEADLINE, "the standby does not follow");
        pause(Duration::from_millis(10)).await;
    }
}
