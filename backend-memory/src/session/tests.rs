use std::{
    sync::Mutex,
    task::{Context, Wake},
};

use advisory_core::{LockBackend, spi::SessionId};
use futures::{FutureExt, executor::block_on};

use super::*;
use crate::{
    MemoryBackend,
    testing::{ByHand, Session, holder, open, s, x},
};

/// A turn that no test outlasts.
fn long() -> Turn {
    Turn::first(None)
}

/// A turn that is soon over.
fn brief() -> Turn {
    Turn::first(Some(Duration::from_millis(5)))
}

fn id(session: &Session) -> SessionId {
    session
        .id()
        .expect("memory sessions have one from the start")
}

fn waiting(backend: &MemoryBackend, key: i64) -> Vec<SessionId> {
    let waiters = backend.waiters(key).into_iter();
    waiters.map(|waiter| waiter.session).collect()
}

fn over(behind_readers: bool) -> Waited {
    Waited::TurnOver { behind_readers }
}

mod submit {
    use super::*;

    #[test]
    fn a_batch_is_answered_in_its_order() {
        block_on(async {
            let backend = MemoryBackend::new();
            let mut other = holder(&backend, x(2)).await;
            let mut session = open(&backend).await;
            let batch = [
                Request::TryLock(x(1)),
                Request::TryLock(x(2)),
                Request::Unlock(x(1)),
                Request::Unlock(x(1)),
                Request::TryLock(s(3)),
            ];
            let answers = session.submit(&batch).await.unwrap();
            assert_eq!(answers, [true, false, true, false, true]);
            assert_eq!(other.submit(&[]).await.unwrap(), []);
        });
    }

    #[test]
    fn an_unlock_wakes_who_waits() {
        block_on(async {
            let backend = MemoryBackend::new();
            let mut first = holder(&backend, x(1)).await;
            let mut second = open(&backend).await;
            let wait = ByHand::pending(second.wait(x(1), long()));
            first.submit(&[Request::Unlock(x(1))]).await.unwrap();
            assert_eq!(wait.outcome().unwrap(), Waited::Granted);
        });
    }
}

mod wait {
    use super::*;

    #[test]
    fn what_is_free_is_granted_at_once() {
        let backend = MemoryBackend::new();
        let mut session = block_on(open(&backend));
        let granted = session.wait(x(1), long()).now_or_never();
        assert_eq!(granted.unwrap().unwrap(), Waited::Granted);
    }

    #[test]
    fn a_turn_ends_when_patience_does_and_leaves_nothing_queued() {
        block_on(async {
            let backend = MemoryBackend::new();
            let _reader = holder(&backend, s(1)).await;
            let _writer = holder(&backend, x(2)).await;
            let mut session = open(&backend).await;
            assert_eq!(session.wait(x(1), brief()).await.unwrap(), over(true));
            assert_eq!(session.wait(x(2), brief()).await.unwrap(), over(false));
            assert_eq!(backend.waiters(1), []);
            assert_eq!(backend.waiters(2), []);
        });
    }

    #[test]
    fn the_next_turn_goes_on_where_the_last_one_was() {
        block_on(async {
            let backend = MemoryBackend::new();
            let _holder = holder(&backend, x(1)).await;
            let mut first = open(&backend).await;
            let first_id = id(&first);
            let mut second = open(&backend).await;
            let second_id = id(&second);

            let mut turn = ByHand::pending(first.wait(x(1), brief()));
            let _second = ByHand::pending(second.wait(x(1), long()));
            assert_eq!(waiting(&backend, 1), [first_id, second_id]);
            while turn.poll().is_pending() {
                std::thread::sleep(Duration::from_millis(1));
            }
            drop(turn);
            assert_eq!(waiting(&backend, 1), [second_id]);

            let turn = ByHand::pending(first.wait(x(1), long()));
            assert_eq!(waiting(&backend, 1), [first_id, second_id]);
            drop(turn);
            assert_eq!(waiting(&backend, 1), [second_id]);
        });
    }

    #[test]
    fn a_new_wait_goes_to_the_end() {
        block_on(async {
            let backend = MemoryBackend::new();
            let _holder = holder(&backend, x(1)).await;
            let mut first = open(&backend).await;
            let mut second = open(&backend).await;
            let ids = [id(&second), id(&first)];

            first.wait(x(1), brief()).await.unwrap();
            let _second = ByHand::pending(second.wait(x(1), long()));
            first.submit(&[Request::TryLock(x(1))]).await.unwrap();
            let _first = ByHand::pending(first.wait(x(1), long()));
            assert_eq!(waiting(&backend, 1), ids);
        });
    }

    #[test]
    fn a_dropped_wait_leaves_the_queue_and_lets_others_in() {
        block_on(async {
            let backend = MemoryBackend::new();
            let _reader = holder(&backend, s(1)).await;
            let mut writer = open(&backend).await;
            let mut reader = open(&backend).await;
            let write = ByHand::pending(writer.wait(x(1), long()));
            let read = ByHand::pending(reader.wait(s(1), long()));
            drop(write);
            assert_eq!(backend.waiters(1), []);
            assert_eq!(read.outcome().unwrap(), Waited::Granted);
        });
    }

    #[test]
    fn a_wait_that_is_dropped_after_its_grant_gives_the_claim_back() {
        block_on(async {
            let backend = MemoryBackend::new();
            let first = holder(&backend, x(1)).await;
            let mut second = holder(&backend, x(2)).await;
            let wait = ByHand::pending(second.wait(x(1), long()));
            drop(first);
            assert_eq!(backend.holders(1).len(), 1);
            drop(wait);
            assert!(backend.holders(1).is_empty());
            assert_eq!(backend.holders(2).len(), 1);
        });
    }

    #[test]
    fn a_deadlock_costs_the_victim_no_more_than_the_wait() {
        block_on(async {
            let backend = MemoryBackend::new();
            let mut first = holder(&backend, x(1)).await;
            let mut second = holder(&backend, x(2)).await;
            let wait = ByHand::pending(first.wait(x(2), long()));

            let deadlock = second.wait(x(1), long()).await;
            let Err(Error::Deadlock { detail, .. }) = deadlock else {
                panic!("{deadlock:?} is no deadlock");
            };
            assert!(detail.unwrap().contains("waits for key 1 (exclusive)"));
            assert!(!second.is_lost());
            assert_eq!(backend.waiters(1), []);
            assert_eq!(backend.holders(2).len(), 1);

            second.submit(&[Request::Unlock(x(2))]).await.unwrap();
            assert_eq!(wait.outcome().unwrap(), Waited::Granted);
        });
    }
}

mod ending {
    use super::*;

    #[test]
    fn a_drop_frees_everything_and_wakes_who_waits() {
        block_on(async {
            let backend = MemoryBackend::new();
            let mut session = holder(&backend, x(1)).await;
            session.submit(&[Request::TryLock(x(1))]).await.unwrap();
            session.submit(&[Request::TryLock(s(2))]).await.unwrap();
            let mut other = open(&backend).await;
            let wait = ByHand::pending(other.wait(x(1), long()));
            drop(session);
            assert_eq!(wait.outcome().unwrap(), Waited::Granted);
            assert!(backend.holders(2).is_empty());
            assert_eq!(backend.sessions(), [id(&other)]);
        });
    }

    #[test]
    fn a_session_is_recycled_without_what_it_held() {
        block_on(async {
            let backend = MemoryBackend::new();
            holder(&backend, x(1)).await.recycle().await;
            assert!(backend.held().is_empty());
            assert!(backend.sessions().is_empty());
        });
    }

    /// A waker may own anything, a session of the same server for example.
    #[test]
    fn a_waker_that_owns_a_session_may_be_dropped_by_the_server() {
        struct Owning(#[expect(dead_code, reason = "is there to be dropped")] Mutex<Session>);
        impl Wake for Owning {
            fn wake(self: Arc<Self>) {}
        }

        block_on(async {
            let backend = MemoryBackend::new();
            let owned = holder(&backend, x(2)).await;
            let _holder = holder(&backend, x(1)).await;
            let mut session = open(&backend).await;

            // Past the timer, which would keep the waker as well.
            let shared = backend.clone();
            shared.stall();
            let mut submit = session.submit(&[]);
            let waker = Arc::new(Owning(Mutex::new(owned))).into();
            assert!(
                submit
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
            drop(waker);
            assert_eq!(backend.holders(2).len(), 1);
            assert!((&mut submit).now_or_never().is_none());
            assert!(backend.holders(2).is_empty());
        });
    }
}

mod holders {
    use super::*;

    #[test]
    fn they_are_described() {
        block_on(async {
            let backend = MemoryBackend::new();
            let mut first = holder(&backend, s(1)).await;
            let mut second = holder(&backend, s(1)).await;
            let _third = holder(&backend, x(2)).await;
            let wait = ByHand::pending(first.wait(x(2), long()));

            let holders = second.holders(1.into()).await.unwrap();
            let states: Vec<_> = holders.iter().map(|h| h.state.as_deref()).collect();
            assert_eq!(states, [Some("active"), Some("idle")]);
            assert!(holders.iter().all(|holder| holder.key == 1.into()
                && holder.application.as_deref() == Some("memory")
                && holder.since.is_some()));
            drop(wait);
            assert_eq!(backend.holders(1)[0].session, id(&first));
            assert_eq!(backend.holders(1)[0].state.as_deref(), Some("idle"));
        });
    }
}

mod turns {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn they_are_short_for_those_that_hold_or_are_wanted() {
        let mut turn = Turn::first(None);
        assert_eq!(length(turn), 1_000 * MS);
        turn.holding = true;
        assert_eq!(length(turn), 50 * MS);
        turn.holding = false;
        turn.wanted = true;
        turn.behind_readers = 9;
        assert_eq!(length(turn), 50 * MS);
    }

    #[test]
    fn they_double_behind_readers_up_to_a_limit() {
        let mut turn = Turn::first(None);
        turn.holding = true;
        turn.behind_readers = 1;
        assert_eq!(length(turn), 100 * MS);
        turn.behind_readers = 3;
        assert_eq!(length(turn), 400 * MS);
        turn.behind_readers = u32::MAX;
        assert_eq!(length(turn), 30_000 * MS);
    }

    #[test]
    fn they_never_outlast_patience() {
        let mut turn = Turn::first(Some(20 * MS));
        turn.behind_readers = 5;
        assert_eq!(length(turn), 20 * MS);
    }
}

#[test]
fn numbers_are_unique_among_backends() {
    block_on(async {
        let (a, b) = (MemoryBackend::new(), MemoryBackend::new());
        let (a, b) = (a.open().await.unwrap(), b.open().await.unwrap());
        assert_ne!(id(&a), id(&b));
    });
}
