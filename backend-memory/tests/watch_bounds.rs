//! What the watch promises, whatever the other options are.

use std::time::{Duration, Instant};

use advisory_backend_memory::MemoryBackend;
use advisory_core::{Error, LockManager, Options};
use futures::executor::block_on;

#[test]
fn silence_is_seen_in_time_whatever_the_bound_for_a_closed_connection() {
    block_on(async {
        let server = MemoryBackend::new();
        let options = Options::new()
            .loss_seen_within(Duration::from_secs(10))
            .silence_seen_within(Duration::from_millis(400));
        let locks = LockManager::with_options(server.clone(), options);
        let guard = locks.named("imports:run").lock().await.unwrap();
        server.stall();
        let started = Instant::now();
        let told = guard.lost().await;
        let took = started.elapsed();
        assert!(matches!(told, Error::Lost { .. }), "{told:?}");
        assert!(took < Duration::from_secs(2), "took {took:?}");
    });
}

#[test]
fn a_token_of_a_lost_lock_is_refused_as_lost() {
    block_on(async {
        let server = MemoryBackend::new();
        let locks = LockManager::new(server.clone());
        let guard = locks.named("imports:run").lock().await.unwrap();
        server.kill(server.holders(guard.key())[0].session);
        let refused = guard.fencing_token().await;
        assert!(matches!(refused, Err(Error::Lost { .. })), "{refused:?}");
    });
}
