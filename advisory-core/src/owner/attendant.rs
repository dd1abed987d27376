//! Finishes what was left behind on sessions that live on.
//!
//! A guard may be dropped where there is no runtime, and a call may be cancelled half-way. The
//! statement that is then under way belongs to the session, and the next call would finish it; but
//! there may be none for long. So one thread of this process, started when it is first needed, sees
//! to it. It does nothing else: nobody who awaits his calls to the end ever wakes it.

use std::{
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, LazyLock, Weak},
    thread,
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded},
    executor::block_on,
    future::{Either, select},
    stream::FuturesUnordered,
};
use futures_timer::Delay;

use super::Owner;

/// How soon a session is dropped whose last user has left while a statement was under way.
const PATIENCE: Duration = Duration::from_millis(100);

/// Where to send those to be attended; `None` if there is no thread to be had. Then what was left
/// behind waits for the next call.
static ATTENDANT: LazyLock<Option<UnboundedSender<Weak<Owner>>>> = LazyLock::new(|| {
    let (sender, owners) = unbounded();
    let thread = thread::Builder::new().name("advisory".to_owned());
    thread.spawn(|| block_on(run(owners))).ok()?;
    Some(sender)
});

/// Has the owner's session looked after until nothing is left to do.
pub(super) fn attend(owner: Weak<Owner>) {
    if let Some(attendant) = &*ATTENDANT {
        // The thread ends with the process.
        _ = attendant.unbounded_send(owner);
    }
}

async fn run(mut owners: UnboundedReceiver<Weak<Owner>>) {
    let mut attended = FuturesUnordered::new();
    loop {
        futures::select_biased! {
            owner = owners.next() => match owner {
                // A backend that panics must not take the others' attendant with it.
                Some(owner) => attended.push(AssertUnwindSafe(settle(owner)).catch_unwind()),
                None => return,
            },
            _ = attended.select_next_some() => {}
        }
    }
}

async fn settle(owner: Weak<Owner>) {
    let Some(owner) = owner.upgrade() else {
        return;
    };
    {
        let mut settled = pin!(owner.line.settle_all());
        while let Either::Right(_) = select(&mut settled, Delay::new(PATIENCE)).await {
            // Nobody else is left, so there is nothing to keep the session for.
            if Arc::strong_count(&owner) == 1 {
                return;
            }
        }
    }
    Owner::leave(owner).await;
}
