//! What the library changes on a connection, and what it leaves alone.

use std::time::Duration;

use advisory_core::postgres::{Row, Value};

use crate::{
    postgres::{PoolMode, PostgresEnv, Tap, left_out::sessions_end, options},
    sync::pause,
};

/// All settings of a connection, one in a row.
const ALL: &str = "SELECT name || '=' || setting FROM pg_settings ORDER BY name";

/// Those that bound how long a holder is waited for whose host is gone, as one text.
const BOUNDS: &str = "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings
    WHERE name LIKE 'tcp\\_keepalives\\_%' OR name = 'tcp_user_timeout'";

/// The probes begin after ten seconds and end within thirty.
const WITHIN_HALF_A_MINUTE: &str = "tcp_keepalives_count=4 tcp_keepalives_idle=10 \
     tcp_keepalives_interval=5 tcp_user_timeout=30000";

pub(super) async fn dead_hosts_are_bounded(env: &PostgresEnv) {
    let (locks, tap) = env.tapped_manager(1).await;
    let before = tap.borrow(ALL).await.unwrap();
    let lock = locks.named("imports:run");
    for _ in 0..3 {
        let guard = lock.lock().await.unwrap();
        tap.before_next(BOUNDS);
        guard.release().await.unwrap();
        let bounds = tap.answers().pop();
        assert_eq!(bounds, Some(Value::Text(WITHIN_HALF_A_MINUTE.into())));
    }
    let after = changed(&before, &tap).await;
    if env.pools_reset_settings() || PoolMode::pins_all() {
        assert_eq!(after, "");
    } else {
        // They stay, and nothing else is different.
        assert_eq!(after, WITHIN_HALF_A_MINUTE);
    }
}

pub(super) async fn dead_hosts_are_bounded_as_asked_for(env: &PostgresEnv) {
    let options = options().dead_host_within(Duration::from_secs(9));
    let (locks, tap) = env.tapped_manager_with(1, options).await;
    let guard = locks.named("imports:run").lock().await.unwrap();
    tap.before_next(BOUNDS);
    guard.release().await.unwrap();
    let bounds = "tcp_keepalives_count=4 tcp_keepalives_idle=3 tcp_keepalives_interval=1 \
         tcp_user_timeout=9000";
    assert_eq!(tap.answers().pop(), Some(Value::Text(bounds.into())));
}

/// Also after a wait, whose grant comes by another way than that of a try.
pub(super) async fn dead_hosts_are_bounded_after_a_wait(env: &PostgresEnv) {
    let (locks, tap) = env.tapped_manager(1).await;
    let lock = locks.named("imports:run");
    let rival = env.manager().await.named("imports:run").lock().await;
    let rival = rival.unwrap();
    let waiting = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().await.unwrap() }
    });
    env.until_waiters(lock.key(), 1).await;
    rival.release().await.unwrap();
    let guard = waiting.await;
    tap.before_next(BOUNDS);
    guard.release().await.unwrap();
    let bounds = tap.answers().pop();
    assert_eq!(bounds, Some(Value::Text(WITHIN_HALF_A_MINUTE.into())));
}

pub(super) async fn dead_hosts_are_left_alone_on_request(env: &PostgresEnv) {
    let options = options().dead_host_unbounded();
    let (locks, tap) = env.tapped_manager_with(1, options).await;
    let before = tap.borrow(ALL).await.unwrap();
    let own = tap.borrow(BOUNDS).await.unwrap().remove(0).remove(0);
    let guard = locks.named("imports:run").lock().await.unwrap();
    tap.before_next(BOUNDS);
    guard.release().await.unwrap();
    assert_eq!(tap.answers(), [own]);
    assert_eq!(changed(&before, &tap).await, "");
}

/// A guard that is held for longer than a session may idle.
pub(super) async fn idle_timeout_is_off_while_held(env: &PostgresEnv) {
    const TIMEOUT: &str = "SELECT current_setting('idle_session_timeout')";
    let text = |text: &str| Some(Value::Text(text.into()));

    env.database().set("idle_session_timeout = '1s'").await;
    if !sessions_end() {
        // That of a pooler which nobody has is ended.
        env.expect_in_log("FATAL:  terminating connection due to idle-session timeout");
    }
    let (locks, tap) = env.tapped_manager(1).await;
    let lock = locks.named("imports:run");
    for held_for in [Duration::from_millis(1500), Duration::ZERO] {
        let guard = lock.lock().await.unwrap();
        let session = env.holder(lock.key()).await;
        pause(held_for).await;
        assert_eq!(env.holder(lock.key()).await, session);
        tap.before_next(TIMEOUT);
        guard.release().await.unwrap();
        assert_eq!(tap.answers().pop(), text("0"));

        // On the pooled connection it is what it was.
        let asked = format!("SELECT pg_backend_pid(); {TIMEOUT}");
        let mut rows = tap.borrow(&asked).await.unwrap();
        assert_eq!(rows.pop().unwrap().pop(), text("1s"));
        assert_eq!(rows.pop().unwrap().pop(), text(&session.to_string()));
    }
}

/// The settings of the pool's connection that are not as before, as one text.
async fn changed(before: &[Row], tap: &Tap) -> String {
    let after = tap.borrow(ALL).await.unwrap();
    let changed = after.iter().filter(|row| !before.contains(row));
    let texts = changed.flatten().map(|value| match value {
        Value::Text(text) => text.as_str(),
        other => panic!("not a text: {other:?}"),
    });
    texts.collect::<Vec<_>>().join(" ")
}
