use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use advisory_core::{Error, Lock, LockGuard, LockManager, Result, Section};
use fastrand::Rng;
use futures::{
    FutureExt,
    future::{BoxFuture, Either, select},
};

use super::{
    KEYS,
    clock::now,
    journal::{AcquisitionId, Event, Outcome, What},
    named,
};
use crate::sync::pause;

/// How often a section awaits something, so that it can be stopped.
const STEP: Duration = Duration::from_millis(4);

/// What a task waits after an acquisition that was for nothing, so that there is not one after the
/// other while there is no server.
const RESPITE: Duration = Duration::from_millis(50);

/// One of a worker's tasks: enters sections at random, and says what becomes of them.
pub(super) struct Visitor {
    locks: LockManager,
    rng: Rng,
    /// How many acquisitions of the worker have a name.
    acquisitions: Arc<AtomicU64>,
    /// Whether the worker is to end.
    ending: Arc<AtomicBool>,
}

/// How to acquire.
#[derive(Clone, Copy)]
enum Way {
    With,
    TryWith,
    WithTimeout(Duration),
    Guard(Duration),
    TryGuard,
}

impl Visitor {
    pub(super) fn new(
        locks: LockManager,
        rng: Rng,
        acquisitions: Arc<AtomicU64>,
        ending: Arc<AtomicBool>,
    ) -> Self {
        Self {
            locks,
            rng,
            acquisitions,
            ending,
        }
    }

    pub(super) async fn run(mut self) {
        while !self.ending.load(Relaxed) {
            let visit = self.visit();
            pause(Duration::from_millis(self.rng.u64(0..20))).await;
            if visit.run().await == Outcome::Failed {
                pause(RESPITE).await;
            }
        }
    }

    /// Chooses the next acquisition.
    fn visit(&mut self) -> Visit {
        let nested = self.rng.u8(0..4) == 0;
        let way = if nested { Way::With } else { self.way() };
        let mut visit = self.visit_by(way);
        if nested {
            let way = self.nested_way();
            let mut inner = self.visit_by(way);
            inner.within = Some(visit.id);
            visit.inner = Some(Box::new(inner));
        }
        visit
    }

    fn visit_by(&mut self, way: Way) -> Visit {
        let key = self.rng.u8(0..KEYS);
        Visit {
            id: self.acquisitions.fetch_add(1, Relaxed),
            key,
            lock: named(&self.locks, key),
            way,
            within: None,
            fenced: self.rng.u8(0..4) > 0,
            stay: self.stay(),
            ending: Arc::clone(&self.ending),
            inner: None,
        }
    }

    fn way(&mut self) -> Way {
        match self.rng.u8(0..8) {
            0..3 => Way::With,
            3 => Way::TryWith,
            4 => Way::TryGuard,
            5 => Way::WithTimeout(self.patience()),
            _ => Way::Guard(self.patience()),
        }
    }

    /// A guard would be a part of the section around it.
    fn nested_way(&mut self) -> Way {
        match self.rng.u8(0..4) {
            0 => Way::With,
            1 => Way::TryWith,
            _ => Way::WithTimeout(self.patience()),
        }
    }

    fn patience(&mut self) -> Duration {
        Duration::from_millis(self.rng.u64(0..5000))
    }

    /// Nothing, a moment, or so long that a fault comes meanwhile.
    fn stay(&mut self) -> Duration {
        Duration::from_millis(match self.rng.u8(0..40) {
            0..10 => 0,
            10..38 => self.rng.u64(1..50),
            _ => self.rng.u64(2000..6000),
        })
    }
}

/// An acquisition, and what is done in its section.
struct Visit {
    id: AcquisitionId,
    key: u8,
    lock: Lock,
    way: Way,
    within: Option<AcquisitionId>,
    /// Whether the section asks for its fencing token.
    fenced: bool,
    stay: Duration,
    /// Then it stays no longer.
    ending: Arc<AtomicBool>,
    inner: Option<Box<Visit>>,
}

impl Visit {
    fn run(&self) -> BoxFuture<'_, Outcome> {
        async move {
            let mut ending = Ending::of(self);
            ending.outcome = outcome(self.acquire().await);
            ending.outcome
        }
        .boxed()
    }

    /// Whether the section has run.
    async fn acquire(&self) -> Result<bool> {
        match self.way {
            Way::With => self.lock.with(|| self.section()).await.map(|()| true),
            Way::TryWith => {
                let ran = self.lock.try_with(|| self.section()).await?;
                Ok(ran.is_some())
            }
            Way::WithTimeout(patience) => {
                let ran = self.lock.with_timeout(patience, || self.section());
                ran.await.map(|()| true)
            }
            Way::Guard(patience) => self.watch(self.lock.lock_timeout(patience).await?).await,
            Way::TryGuard => match self.lock.try_lock().await? {
                Some(guard) => self.watch(guard).await,
                None => Ok(false),
            },
        }
    }

    /// What those do who have a guard: they look after their section themselves.
    async fn watch(&self, guard: LockGuard) -> Result<bool> {
        let work = Box::pin(self.stay_in(Some(&guard)));
        // The work is dropped with this statement.
        let lost = match select(work, Box::pin(guard.lost())).await {
            Either::Left(_) => None,
            Either::Right((lost, _)) => Some(lost),
        };
        match lost {
            None => guard.release().await.map(|()| true),
            Some(lost) => Err(lost),
        }
    }

    async fn section(&self) {
        self.stay_in(None).await;
    }

    async fn stay_in(&self, guard: Option<&LockGuard>) {
        let _presence = Presence::of(self);
        if self.fenced {
            match guard {
                Some(guard) => self.fence(guard).await,
                // In a section this enters the lock again, and asks nobody.
                None => {
                    if let Ok(Some(guard)) = self.lock.try_lock().await {
                        self.fence(&guard).await;
                    }
                }
            }
        }
        self.stay().await;
        if let Some(inner) = &self.inner {
            inner.run().await;
            self.stay().await;
        }
    }

    async fn fence(&self, guard: &LockGuard) {
        // A session that is lost has none to give.
        if let Ok(token) = guard.fencing_token().await {
            let token = token.as_i64();
            self.tell(What::Fenced { token });
        }
    }

    async fn stay(&self) {
        let begun = Instant::now();
        while let Some(left) = self.stay.checked_sub(begun.elapsed())
            && !left.is_zero()
            && !self.ending.load(Relaxed)
        {
            pause(left.min(STEP)).await;
        }
    }

    fn tell(&self, what: What) {
        let acquisition = self.id;
        Event { acquisition, what }.tell();
    }
}

/// Says when an acquisition begins, and how it ends.
struct Ending<'a> {
    visit: &'a Visit,
    outcome: Outcome,
}

impl<'a> Ending<'a> {
    fn of(visit: &'a Visit) -> Self {
        visit.tell(What::Asks);
        let outcome = Outcome::Dropped;
        Self { visit, outcome }
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let outcome = self.outcome;
        self.visit.tell(What::Ends { outcome });
    }
}

/// Says when a section begins, and when it is over: the moment in which its future is dropped, if
/// it is stopped.
struct Presence<'a>(&'a Visit);

impl<'a> Presence<'a> {
    fn of(visit: &'a Visit) -> Self {
        visit.tell(What::Enters {
            key: visit.key,
            within: visit.within,
            at: now(),
        });
        Self(visit)
    }
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        self.0.tell(What::Leaves { at: now() });
    }
}

/// # Panics
///
/// If no fault explains it.
fn outcome(result: Result<bool>) -> Outcome {
    match result {
        Ok(true) => Outcome::Held,
        Ok(false) => Outcome::Missed,
        Err(Error::Timeout { .. }) => Outcome::TimedOut,
        Err(Error::Deadlock { .. }) => Outcome::Deadlocked,
        Err(Error::Lost { section, .. }) => match section {
            Section::Stopped => Outcome::Stopped,
            Section::Completed => Outcome::Completed,
            _ => Outcome::Lost,
        },
        Err(Error::Backend(_) | Error::PoolExhausted { .. }) => Outcome::Failed,
        Err(other) => panic!("no fault causes this: {other:?}"),
    }
}
