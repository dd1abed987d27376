use std::{
    future::poll_fn,
    mem::{self, ManuallyDrop},
    sync::atomic::{AtomicBool, Ordering},
    task::Poll,
};

use advisory_backend_memory::MemoryBackend;
use advisory_core::{Error, LockBackend, LockSession, Result};
use async_trait::async_trait;

use crate::broken::{Fault, Sound};

#[derive(Debug)]
pub(crate) struct OpensWhenClosed;

#[async_trait]
impl Fault for OpensWhenClosed {
    async fn close(&self, _: &MemoryBackend) -> Result<()> {
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(crate) struct ClosesOnce(AtomicBool);

#[async_trait]
impl Fault for ClosesOnce {
    async fn close(&self, server: &MemoryBackend) -> Result<()> {
        if self.0.swap(true, Ordering::SeqCst) {
            return Err(Error::Closed);
        }
        server.close().await
    }
}

/// What is given back stays open, for nobody.
#[derive(Debug)]
pub(crate) struct RecyclesNothing;

#[async_trait]
impl Fault for RecyclesNothing {
    async fn recycle(&self, sound: Sound) {
        mem::forget(sound);
    }
}

#[derive(Debug)]
pub(crate) struct OpensAsManyAsAreAskedFor;

#[async_trait]
impl Fault for OpensAsManyAsAreAskedFor {
    async fn open(&self, server: &MemoryBackend) -> Result<Box<dyn LockSession>> {
        let unlimited = server.clone().with_max_sessions(usize::MAX);
        unlimited.open().await
    }
}

/// Who goes away while a session is opened takes it along.
#[derive(Debug)]
pub(crate) struct OpensForThoseWhoAreGone;

#[async_trait]
impl Fault for OpensForThoseWhoAreGone {
    async fn open(&self, server: &MemoryBackend) -> Result<Box<dyn LockSession>> {
        let session = ManuallyDrop::new(server.open().await?);
        let mut asked = false;
        poll_fn(|cx| {
            if mem::replace(&mut asked, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        Ok(ManuallyDrop::into_inner(session))
    }
}
