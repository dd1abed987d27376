use std::time::Duration;

use advisory_core::{
    LockBackend,
    spi::{LockSession, Request, Turn, Waited},
};
use futures::{FutureExt, executor::block_on};

use super::*;
use crate::{
    MemoryBackend,
    testing::{ByHand, holder, open, x},
};

/// Opens a session of a pool that may be full.
async fn checkout(backend: &MemoryBackend) -> Result<Box<dyn LockSession>> {
    backend.open().await
}

mod pool {
    use super::*;

    #[test]
    fn who_asks_first_gets_the_next_session() {
        let pool = MemoryBackend::new().with_max_sessions(1);
        let session = block_on(open(&pool));
        let first = ByHand::pending(checkout(&pool));
        let mut second = ByHand::pending(checkout(&pool));

        drop(session);
        // Nobody overtakes, a newcomer neither.
        assert!(second.poll().is_pending());
        let _third = ByHand::pending(checkout(&pool));
        // It may have been woken, for the first might not come. It waits all the same.
        assert!(second.poll().is_pending());
        drop(first.outcome().unwrap());
        second.outcome().unwrap();
    }

    #[test]
    fn who_gives_up_lets_the_next_one_in() {
        let pool = MemoryBackend::new().with_max_sessions(1);
        let session = block_on(open(&pool));
        let first = ByHand::pending(checkout(&pool));
        let second = ByHand::pending(checkout(&pool));
        drop(session);
        drop(first);
        second.outcome().unwrap();
    }

    #[test]
    fn all_that_have_room_get_in() {
        let pool = MemoryBackend::new().with_max_sessions(2);
        let (one, two) = (block_on(open(&pool)), block_on(open(&pool)));
        let first = ByHand::pending(checkout(&pool));
        let second = ByHand::pending(checkout(&pool));
        drop((one, two));
        let _first = first.outcome().unwrap();
        second.outcome().unwrap();
    }

    #[test]
    fn a_killed_session_makes_room() {
        let pool = MemoryBackend::new().with_max_sessions(1);
        let session = block_on(open(&pool));
        let next = ByHand::pending(checkout(&pool));
        assert!(pool.kill(session.id().unwrap()));
        next.outcome().unwrap();
    }

    #[test]
    fn a_full_pool_is_exhausted_after_the_checkout_timeout() {
        let pool = MemoryBackend::new()
            .with_max_sessions(1)
            .with_checkout_timeout(Duration::from_millis(5));
        let _session = block_on(open(&pool));
        let late = block_on(checkout(&pool));
        assert!(matches!(late, Err(Error::PoolExhausted { .. })), "{late:?}");
    }

    #[test]
    fn a_clone_has_its_own() {
        let pool = MemoryBackend::new().with_max_sessions(1);
        let clone = pool.clone();
        let _session = block_on(open(&pool));
        let _other = block_on(open(&clone));
        assert!(checkout(&clone).now_or_never().is_none());
        assert_eq!(pool.sessions().len(), 2);
    }
}

mod close {
    use super::*;

    #[test]
    fn a_closed_backend_opens_nothing_while_its_clones_do() {
        block_on(async {
            let backend = MemoryBackend::new();
            let mut session = open(&backend).await;
            backend.close().await.unwrap();
            backend.close().await.unwrap();
            assert!(matches!(checkout(&backend).await, Err(Error::Closed)));
            session.submit(&[Request::TryLock(x(1))]).await.unwrap();
            open(&backend.clone()).await;
        });
    }

    #[test]
    fn who_waits_for_a_session_is_told() {
        let pool = MemoryBackend::new().with_max_sessions(1);
        let _session = block_on(open(&pool));
        let next = ByHand::pending(checkout(&pool));
        block_on(pool.close()).unwrap();
        assert!(matches!(next.outcome(), Err(Error::Closed)));
    }
}

mod refusal {
    use super::*;

    #[test]
    fn new_sessions_are_refused_and_open_ones_go_on() {
        block_on(async {
            let backend = MemoryBackend::new();
            let mut session = open(&backend).await;
            backend.refuse_sessions(Error::NotPrimary);
            assert!(matches!(
                checkout(&backend.clone()).await,
                Err(Error::NotPrimary)
            ));
            session.submit(&[Request::TryLock(x(1))]).await.unwrap();
            backend.accept_sessions();
            open(&backend).await;
        });
    }

    #[test]
    fn who_waits_for_a_session_is_told() {
        let pool = MemoryBackend::new().with_max_sessions(1);
        let _session = block_on(open(&pool));
        let next = ByHand::pending(checkout(&pool));
        pool.refuse_sessions(Error::backend("connection refused"));
        assert!(matches!(next.outcome(), Err(Error::Backend(_))));
    }
}

mod kill {
    use super::*;

    #[test]
    fn a_killed_session_has_lost_everything() {
        block_on(async {
            let backend = MemoryBackend::new();
            let mut session = holder(&backend, x(1)).await;
            let mut other = open(&backend).await;
            let wait = ByHand::pending(other.wait(x(1), Turn::first(None)));

            let id = session.id().unwrap();
            assert!(backend.kill(id));
            assert!(!backend.kill(id));
            assert_eq!(wait.outcome().unwrap(), Waited::Granted);
            assert!(session.is_lost());
            assert_eq!(session.id(), Some(id));
            let unlock = session.submit(&[Request::Unlock(x(1))]).await;
            assert!(matches!(unlock, Err(Error::Backend(_))));
            let wait = session.wait(x(2), Turn::first(None)).await;
            assert!(matches!(wait, Err(Error::Backend(_))));
            assert!(session.holders(1.into()).await.is_err());
            drop(session);
            assert_eq!(backend.holders(1)[0].session, other.id().unwrap());
        });
    }

    #[test]
    fn a_wait_under_way_fails() {
        block_on(async {
            let backend = MemoryBackend::new();
            let _holder = holder(&backend, x(1)).await;
            let mut session = open(&backend).await;
            let id = session.id().unwrap();
            let wait = ByHand::pending(session.wait(x(1), Turn::first(None)));
            assert!(backend.kill(id));
            assert_eq!(backend.waiters(1), []);
            assert!(matches!(wait.outcome(), Err(Error::Backend(_))));
        });
    }
}

mod stall {
    use super::*;

    #[test]
    fn every_call_is_answered_after_it() {
        block_on(async {
            let backend = MemoryBackend::new();
            let batch = [Request::TryLock(x(1))];
            let mut one = open(&backend).await;
            let mut two = open(&backend).await;
            let mut three = open(&backend).await;
            backend.stall();
            let submit = ByHand::pending(one.submit(&batch));
            let wait = ByHand::pending(two.wait(x(2), Turn::first(None)));
            let holders = ByHand::pending(three.holders(1.into()));
            let opened = ByHand::pending(checkout(&backend));
            assert!(backend.held().is_empty());

            backend.resume();
            assert_eq!(submit.outcome().unwrap(), [true]);
            assert_eq!(wait.outcome().unwrap(), Waited::Granted);
            assert_eq!(holders.outcome().unwrap().len(), 1);
            opened.outcome().unwrap();
        });
    }

    #[test]
    fn a_wait_that_is_granted_meanwhile_is_answered_after_it() {
        block_on(async {
            let backend = MemoryBackend::new();
            let first = holder(&backend, x(1)).await;
            let mut second = open(&backend).await;
            let mut wait = ByHand::pending(second.wait(x(1), Turn::first(None)));
            backend.stall();
            drop(first);
            assert!(wait.poll().is_pending());
            backend.resume();
            assert_eq!(wait.outcome().unwrap(), Waited::Granted);
        });
    }

    #[test]
    fn not_even_the_end_of_a_turn_is_answered() {
        block_on(async {
            let backend = MemoryBackend::new();
            let _first = holder(&backend, x(1)).await;
            let mut second = open(&backend).await;
            let patience = Duration::from_millis(5);
            let mut wait = ByHand::pending(second.wait(x(1), Turn::first(Some(patience))));
            backend.stall();
            futures_timer::Delay::new(4 * patience).await;
            assert!(wait.poll().is_pending());
            wait.woken();
            backend.resume();
            let behind_readers = false;
            assert_eq!(wait.outcome().unwrap(), Waited::TurnOver { behind_readers });
        });
    }

    #[test]
    fn a_dropped_session_is_gone_all_the_same() {
        block_on(async {
            let backend = MemoryBackend::new();
            let session = holder(&backend, x(1)).await;
            backend.stall();
            drop(session);
            assert!(backend.held().is_empty());
        });
    }

    #[test]
    fn a_connection_can_break_in_it() {
        block_on(async {
            let backend = MemoryBackend::new();
            let mut session = open(&backend).await;
            let id = session.id().unwrap();
            let batch = [Request::TryLock(x(1))];
            backend.stall();
            let submit = ByHand::pending(session.submit(&batch));
            backend.kill(id);
            assert!(matches!(submit.outcome(), Err(Error::Backend(_))));
        });
    }
}
