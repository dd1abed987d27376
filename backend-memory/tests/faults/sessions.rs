use std::{
    mem,
    sync::atomic::{AtomicI64, Ordering},
};

use advisory_core::{
    Holder, LockKey, LockMode, Result, SessionId,
    spi::{Claim, Request},
};
use async_trait::async_trait;

use crate::broken::{Fault, Sound};

/// Says something else of who it is.
#[derive(Debug)]
pub(crate) struct Id(pub(crate) fn(SessionId) -> Option<SessionId>);

impl Fault for Id {
    fn id(&self, sound: &Sound) -> Option<SessionId> {
        sound.session.id().and_then(self.0)
    }
}

/// Is somebody else for the server than for itself.
pub(crate) fn other(id: SessionId) -> Option<SessionId> {
    Some(SessionId::new(0, id.number() + 1000))
}

/// Is the same as all others.
pub(crate) fn same(_: SessionId) -> Option<SessionId> {
    Some(SessionId::new(0, 1))
}

/// Is new whenever it is asked.
pub(crate) fn new(_: SessionId) -> Option<SessionId> {
    static NEXT: AtomicI64 = AtomicI64::new(1);
    Some(SessionId::new(0, NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// Shows some of those who hold a key.
#[derive(Debug)]
pub(crate) struct Shows(pub(crate) fn(&Holder, &Sound) -> bool);

#[async_trait]
impl Fault for Shows {
    async fn holders(&self, sound: &mut Sound, key: LockKey) -> Result<Vec<Holder>> {
        let mut holders = sound.session.holders(key).await?;
        holders.retain(|holder| (self.0)(holder, sound));
        Ok(holders)
    }
}

#[derive(Debug)]
pub(crate) struct ShowsWaiters;

#[async_trait]
impl Fault for ShowsWaiters {
    async fn holders(&self, sound: &mut Sound, key: LockKey) -> Result<Vec<Holder>> {
        let mut holders = sound.session.holders(key).await?;
        let waiters = sound.server.waiters(key).into_iter();
        holders.extend(waiters.map(|waiter| Holder::new(waiter.session, key, waiter.mode)));
        Ok(holders)
    }
}

/// What it takes it takes twice, and so it keeps it when it has given it back.
#[derive(Debug)]
pub(crate) struct TakesTwice;

#[async_trait]
impl Fault for TakesTwice {
    async fn submit(&self, sound: &mut Sound, batch: &[Request]) -> Result<Vec<bool>> {
        let locks = batch.iter().copied();
        let locks = locks.filter(|request| matches!(request, Request::TryLock(_)));
        sound.session.submit(&locks.collect::<Vec<_>>()).await?;
        sound.session.submit(batch).await
    }
}

/// A connection that goes back with a lock on it.
#[derive(Debug)]
pub(crate) struct RecyclesWithALock;

#[async_trait]
impl Fault for RecyclesWithALock {
    async fn recycle(&self, mut sound: Sound) {
        let claim = Claim {
            key: LockKey::BigInt(3),
            mode: LockMode::Shared,
        };
        let taken = sound.session.submit(&[Request::TryLock(claim)]).await;
        taken.expect("the session lives");
        mem::forget(sound);
    }
}

#[derive(Debug)]
pub(crate) struct OutlivesItsDrop;

impl Fault for OutlivesItsDrop {
    fn dropped(&self, sound: Sound) {
        mem::forget(sound);
    }
}
