//! The thread that finishes what was left behind, where it meets those who leave a session.

mod broken;
mod gate;
mod memory;

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{Sender, channel},
    },
    task::{Context, Wake, Waker},
    thread,
    time::Duration,
};

use advisory_conformance_tests::Harness;
use advisory_core::{LockManager, Result, spi::Request};
use async_trait::async_trait;
use broken::{Broken, Fault, Sound};
use futures::{FutureExt, executor::block_on, future::BoxFuture};
use gate::Gate;

const BOUND: Duration = Duration::from_secs(10);

/// Keeps batches waiting, and tells how sessions end.
#[derive(Clone, Debug)]
struct Watched {
    gate: Gate,
    ends: Sender<End>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Recycled,
    Dropped,
}

#[async_trait]
impl Fault for Watched {
    async fn submit(&self, sound: &mut Sound, batch: &[Request]) -> Result<Vec<bool>> {
        self.gate.pass().await;
        sound.session.submit(batch).await
    }

    async fn recycle(&self, sound: Sound) {
        sound.session.recycle().await;
        self.ends.send(End::Recycled).unwrap();
    }

    fn dropped(&self, sound: Sound) {
        drop(sound);
        self.ends.send(End::Dropped).unwrap();
    }
}

/// A task that comes to be polled just when the attendant wakes it.
struct Visitor {
    future: Mutex<Option<BoxFuture<'static, ()>>>,
    done: Sender<()>,
}

impl Visitor {
    fn poll(self: &Arc<Self>) {
        let waker = Waker::from(Arc::clone(self));
        let mut future = self.future.lock().unwrap();
        let polled = future.as_mut().expect("it has not ended");
        if polled
            .poll_unpin(&mut Context::from_waker(&waker))
            .is_ready()
        {
            *future = None;
            self.done.send(()).unwrap();
        }
    }
}

impl Wake for Visitor {
    fn wake(self: Arc<Self>) {
        if thread::current().name() == Some("advisory") {
            self.poll();
        }
    }
}

/// The last one leaves while the attendant is there, who has more to do.
#[test]
fn a_session_that_the_attendant_leaves_last_goes_back_to_its_pool() {
    let (gate, (ends, ended)) = (Gate::default(), channel());
    let watched = Watched {
        gate: gate.clone(),
        ends,
    };
    let space = block_on(Broken::by(watched).space());
    let locks = LockManager::new(block_on(space.backend(1)));
    let session = block_on(locks.session()).unwrap();
    let [one, two] = [1, 2].map(|key: i64| block_on(session.lock(&locks.keyed(key))).unwrap());
    drop(session);

    gate.shut();
    let (sender, done) = channel();
    let release = async move { two.release().await.unwrap() };
    let last = Arc::new(Visitor {
        future: Mutex::new(Some(release.boxed())),
        done: sender,
    });
    last.poll();
    // Left to the attendant.
    drop(one);
    gate.let_pass(1);
    done.recv_timeout(BOUND).expect("the attendant came by");
    gate.let_pass(1);
    assert_eq!(ended.recv_timeout(BOUND), Ok(End::Recycled));
}
