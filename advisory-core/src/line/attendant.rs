//! Finishes what was left behind on sessions that live on, and looks after local queues.
//!
//! A guard may be dropped where there is no runtime, and a call may be cancelled half-way. The
//! statement that is then under way belongs to the session, and the next call would finish it; but
//! there may be none for long. And those who wait in a local queue must not wait for somebody who
//! never polls. So one thread of this process, started when it is first needed, sees to it: nobody
//! who awaits his calls to the end, and has nobody waiting for him, ever wakes it.

use std::{
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{LazyLock, Weak},
    task::Poll,
    thread,
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded},
    executor::block_on,
    future::{BoxFuture, select},
    pending,
    stream::FuturesUnordered,
};
use futures_timer::Delay;

use super::LineOwner;

/// Most sessions that are left in the middle of a call go with their last user at once, and want no
/// attendant.
const MOMENT: Duration = Duration::from_millis(1);

/// A session that goes with its last user wakes nobody, so there is a look at it now and then.
const LOOK: Duration = Duration::from_millis(100);

/// Where to send those to be attended; `None` if there is no thread to be had. Then what was left
/// behind waits for the next call.
static ATTENDANT: LazyLock<Option<UnboundedSender<BoxFuture<'static, ()>>>> = LazyLock::new(|| {
    let (sender, works) = unbounded();
    let thread = thread::Builder::new().name("advisory".to_owned());
    thread.spawn(|| block_on(run(works))).ok()?;
    Some(sender)
});

/// Has work done that nobody else polls.
pub(crate) fn attend(work: impl Future<Output = ()> + Send + 'static) {
    if let Some(attendant) = &*ATTENDANT {
        // The thread ends with the process.
        _ = attendant.unbounded_send(Box::pin(work));
    }
}

/// Has the owner's session looked after until nothing is left to do.
pub(super) fn settle(owner: Weak<dyn LineOwner>) {
    attend(settled(owner));
}

async fn run(mut works: UnboundedReceiver<BoxFuture<'static, ()>>) {
    let mut attended = FuturesUnordered::new();
    loop {
        futures::select_biased! {
            work = works.next() => match work {
                // A backend that panics must not take the others' attendant with it.
                Some(work) => attended.push(AssertUnwindSafe(work).catch_unwind()),
                None => return,
            },
            _ = attended.select_next_some() => {}
        }
    }
}

/// Keeps the owner only while it looks: whoever leaves it last must find itself the last.
async fn settled(owner: Weak<dyn LineOwner>) {
    Delay::new(MOMENT).await;
    loop {
        let look = poll_fn(|cx| {
            let owner = owner.upgrade();
            Poll::Ready(owner.map(|owner| (owner.line().poll_left_behind(cx), owner)))
        });
        let Some((settled, owner)) = look.await else {
            return;
        };
        // The others may have left meanwhile, and taken the attendant for one who stays.
        owner.leave().await;
        if settled.is_ready() {
            return;
        }
        let woken = pin!(async { pending!() });
        select(woken, Delay::new(LOOK)).await;
    }
}
