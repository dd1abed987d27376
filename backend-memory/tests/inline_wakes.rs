//! Wakers that run code of the library: those of executors that poll a task in its waker, as some do on
//! one thread, and those of tasks that have a guard.

use std::{
    future::{Future, poll_fn},
    mem,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::channel,
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use advisory_backend_memory::MemoryBackend;
use advisory_core::{LockGuard, LockManager, Options, Sessions};
use futures::{FutureExt, executor::block_on, future::BoxFuture};

/// A task that is polled by whoever wakes it.
struct Inline {
    /// `None` while it is polled, and when it has ended.
    future: Mutex<Option<BoxFuture<'static, ()>>>,
    /// Whether it was woken while it was polled.
    again: AtomicBool,
    done: AtomicBool,
}

impl Inline {
    fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        let task = Arc::new(Self {
            future: Mutex::new(Some(future.boxed())),
            again: AtomicBool::new(false),
            done: AtomicBool::new(false),
        });
        Arc::clone(&task).wake();
        task
    }
}

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        self.again.store(true, SeqCst);
        while self.again.load(SeqCst) {
            let future = mem::take(&mut *self.future.lock().unwrap());
            let Some(mut future) = future else {
                // Whoever polls it sees that it has to do so again.
                return;
            };
            self.again.store(false, SeqCst);
            let waker = Waker::from(Arc::clone(&self));
            match future.poll_unpin(&mut Context::from_waker(&waker)) {
                Poll::Pending => *self.future.lock().unwrap() = Some(future),
                Poll::Ready(()) => self.done.store(true, SeqCst),
            }
        }
    }
}

/// Whoever ends a call of another task wakes it, and so polls it.
#[test]
fn tasks_of_one_session_wake_each_other() {
    let (sender, done) = channel();
    thread::spawn(move || {
        let server = MemoryBackend::new();
        let locks = LockManager::new(server.clone());
        let session = block_on(locks.session()).unwrap();
        // The first call is under way, and the others are queued, when the server answers.
        server.stall();
        let tasks = [1, 2, 3].map(|key: i64| {
            let (session, lock) = (session.clone(), locks.keyed(key));
            Inline::spawn(async move {
                let guard = session.lock(&lock).await.unwrap();
                guard.release().await.unwrap();
            })
        });
        server.resume();
        let ended = tasks.iter().filter(|task| task.done.load(SeqCst)).count();
        sender.send(ended).unwrap();
    });
    let ended = done.recv_timeout(Duration::from_secs(10));
    assert_eq!(ended, Ok(3), "a waker was called under a lock");
}

/// A release on one session grants the lock to another one, whose task goes on at once, and comes back
/// to the first.
#[test]
fn whom_a_release_wakes_may_use_its_session() {
    let (sender, done) = channel();
    thread::spawn(move || {
        let server = MemoryBackend::new();
        let [ours, theirs] = [(); 2].map(|()| LockManager::new(server.clone()));
        let session = block_on(ours.session()).unwrap();
        let held = block_on(session.lock(&ours.keyed(1))).unwrap();
        let task = {
            let (session, other) = (session.clone(), ours.keyed(2));
            Inline::spawn(async move {
                let granted = theirs.keyed(1).lock().await.unwrap();
                session.lock(&other).await.unwrap().release().await.unwrap();
                granted.release().await.unwrap();
            })
        };
        block_on(held.release()).unwrap();
        sender.send(task.done.load(SeqCst)).unwrap();
    });
    let ended = done.recv_timeout(Duration::from_secs(10));
    assert_eq!(ended, Ok(true), "a waker was called under a lock");
}

/// A session that is given up makes room for another one, whose task looks after a guard of the first.
#[test]
fn whom_a_lost_session_wakes_may_look_at_it() {
    let (sender, done) = channel();
    thread::spawn(move || {
        let server = MemoryBackend::new().with_max_sessions(1);
        let options = Options::new().answer_within(Duration::from_millis(100));
        let locks = LockManager::with_options(server.clone(), options);
        let session = block_on(locks.session()).unwrap();
        let held = block_on(session.lock(&locks.keyed(1))).unwrap();
        let other = locks.keyed(2);
        let seen = Arc::new(AtomicBool::new(false));
        let _task = {
            let seen = Arc::clone(&seen);
            Inline::spawn(async move {
                let mut opening = pin!(locks.session());
                poll_fn(|cx| {
                    let opened = opening.as_mut().poll(cx).map(drop);
                    seen.store(held.is_lost(), SeqCst);
                    opened
                })
                .await;
            })
        };
        server.stall();
        assert!(block_on(session.lock(&other)).is_err());
        sender.send(seen.load(SeqCst)).unwrap();
    });
    let ended = done.recv_timeout(Duration::from_secs(10));
    assert_eq!(ended, Ok(true), "a session was dropped under a lock");
}

/// The end of the last lock ends the wait of whoever closes the manager.
#[test]
fn who_closes_goes_on_in_the_drop_of_the_last_guard() {
    let (sender, done) = channel();
    thread::spawn(move || {
        let locks = LockManager::new(MemoryBackend::new());
        let guard = block_on(locks.keyed(1).lock()).unwrap();
        let closing = Inline::spawn(async move { locks.close().await.unwrap() });
        drop(guard);
        sender.send(closing.done.load(SeqCst)).unwrap();
    });
    let ended = done.recv_timeout(Duration::from_secs(10));
    assert_eq!(ended, Ok(true), "a waker was called under a lock");
}

/// Siblings wait for each other without the server, and owners of a shared session do.
#[test]
fn who_waits_locally_goes_on_in_the_release() {
    let (sender, done) = channel();
    thread::spawn(move || {
        let locks = LockManager::new(MemoryBackend::new());
        let session = block_on(locks.session()).unwrap();
        let lock = locks.keyed(1);
        let held = block_on(session.scope(lock.lock())).unwrap().unwrap();
        let sibling = {
            let lock = lock.clone();
            Inline::spawn(async move {
                let section = session.scope(lock.with(async || ()));
                section.await.unwrap().unwrap();
            })
        };
        block_on(held.release()).unwrap();

        let options = Options::new().sessions(Sessions::Shared);
        let locks = LockManager::with_options(MemoryBackend::new(), options);
        let held = block_on(locks.keyed(1).lock()).unwrap();
        let session = block_on(locks.session()).unwrap();
        let other = {
            let lock = locks.keyed(1);
            Inline::spawn(async move {
                session.lock(&lock).await.unwrap().release().await.unwrap();
            })
        };
        block_on(held.release()).unwrap();
        let ended = [sibling, other].map(|task| task.done.load(SeqCst));
        sender.send(ended).unwrap();
    });
    let ended = done.recv_timeout(Duration::from_secs(10));
    assert_eq!(ended, Ok([true; 2]), "a waker was called under a lock");
}

/// A task that has ended but for its wakers. The last of them takes the guard along.
struct Ended {
    _guard: Mutex<LockGuard>,
}

impl Wake for Ended {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_waker_that_goes_takes_a_guard_of_the_session_along() {
    let (sender, done) = channel();
    thread::spawn(move || {
        let server = MemoryBackend::new();
        let locks = LockManager::new(server.clone());
        let session = block_on(locks.session()).unwrap();
        let [held, one, two] = [1, 2, 3].map(|key: i64| locks.keyed(key));
        let held = block_on(session.lock(&held)).unwrap();
        server.stall();
        let mut first = pin!(session.lock(&one));
        {
            let _guard = Mutex::new(held);
            let waker = Waker::from(Arc::new(Ended { _guard }));
            let begun = first.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(begun.is_pending());
        }
        server.resume();
        // Whoever comes next sees to it that the first has his answer.
        let mut cx = Context::from_waker(Waker::noop());
        let mut second = pin!(session.lock(&two));
        assert!(second.as_mut().poll(&mut cx).is_ready());
        sender.send(first.poll(&mut cx).is_ready()).unwrap();
    });
    let ended = done.recv_timeout(Duration::from_secs(10));
    assert_eq!(ended, Ok(true), "a waker was dropped under a lock");
}
