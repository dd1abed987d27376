use std::time::Duration;

use advisory_core::{Error, LockManager, Options, Section};
use futures::future::pending;

use super::{CLOSED_WITHIN, LossEnv, NAME, running::Running, within};
use crate::{
    outcome::lost,
    postgres::{Database, Proxy, Server},
    sync::{DEADLINE, Gate, pause},
};

/// How soon silence is to be seen; by default it takes five times as long.
const SILENT_WITHIN: Duration = Duration::from_secs(2);

pub(super) async fn cut_stops_a_section(env: &LossEnv) {
    let network = Network::set_up(env, Options::new()).await;
    let section = Running::start(env, network.locks.named(NAME)).await;
    network.proxy.cut();
    section.stopped_within(CLOSED_WITHIN).await;
    network.take_down().await;
}

pub(super) async fn cut_is_told_to_whoever_has_a_guard(env: &LossEnv) {
    let network = Network::set_up(env, Options::new()).await;
    let guard = network.locks.named(NAME).lock().await.unwrap();
    network.proxy.cut();
    let told = within(CLOSED_WITHIN, guard.lost()).await;
    assert!(matches!(told, Error::Lost { .. }), "{told:?}");
    assert!(guard.is_lost());
    lost(guard.release().await);
    network.take_down().await;
}

pub(super) async fn silence_stops_a_section(env: &LossEnv) {
    let network = Network::that_may_fall_silent(env).await;
    let section = Running::start(env, network.locks.named(NAME)).await;
    network.proxy.silence();
    section.stopped_within(SILENT_WITHIN).await;
    network.take_down().await;
}

pub(super) async fn silence_stops_a_scope(env: &LossEnv) {
    let network = Network::that_may_fall_silent(env).await;
    let session = network.locks.session().await.unwrap();
    let guard = session.lock(&network.locks.named(NAME)).await.unwrap();
    let running = Gate::default();
    let scope = session.scope(async {
        running.open();
        pending::<()>().await;
    });
    let (scope, ()) = futures::join!(within(SILENT_WITHIN, scope), async {
        running.passed().await;
        network.proxy.silence();
    });
    assert_eq!(lost(scope), Section::Stopped);
    assert!(session.is_lost() && guard.is_lost());
    lost(guard.release().await);
    lost(session.release().await);
    network.take_down().await;
}

pub(super) async fn silence_is_told_to_whoever_has_a_guard(env: &LossEnv) {
    let network = Network::that_may_fall_silent(env).await;
    let guard = network.locks.named(NAME).lock().await.unwrap();
    network.proxy.silence();
    let told = within(SILENT_WITHIN, guard.lost()).await;
    assert!(matches!(told, Error::Lost { .. }), "{told:?}");
    assert!(guard.is_lost());
    lost(guard.release().await);
    network.take_down().await;
}

/// A manager, and a network between it and its database.
struct Network {
    database: Database,
    proxy: Proxy,
    locks: LockManager,
}

impl Network {
    async fn set_up(env: &LossEnv, options: Options) -> Self {
        let database = Server::shared().database().await;
        let proxy = Proxy::to(database.url()).await;
        let locks = env.manager_with(proxy.url(), options).await;
        Self {
            database,
            proxy,
            locks,
        }
    }

    async fn that_may_fall_silent(env: &LossEnv) -> Self {
        Self::set_up(env, Options::new().silence_seen_within(SILENT_WITHIN)).await
    }

    /// The library has closed the connection, so the lock is free; and when the network is there
    /// again the manager can go on.
    async fn take_down(self) {
        let client = self.database.client().await;
        let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database =
            (SELECT oid FROM pg_database WHERE datname = current_database())";
        let freed = async {
            while client.value(held).await != "0" {
                pause(Duration::from_millis(10)).await;
            }
        };
        within(CLOSED_WITHIN, freed).await;
        self.proxy.speak();
        let guard = self.locks.named(NAME).lock_timeout(DEADLINE).await;
        guard.unwrap().release().await.unwrap();
        self.database.remove().await;
    }
}
