use std::{ops::Range, sync::Arc};

use advisory::{
    Lock, LockBackend, LockGuard, LockManager, MemoryBackend, Options, PostgresOptions, Sessions,
    SqlxBackend, TokioPostgresBackend,
};
use async_trait::async_trait;
use futures::{
    FutureExt,
    future::{BoxFuture, ready},
};

use super::{Place, Rival, Section, pools};

/// This library, on one of its backends.
struct Ours {
    locks: LockManager,
    manner: Manner,
    query: Query,
}

/// A query on a connection of the same pool.
type Query = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// A way to use it.
#[derive(Clone, Copy)]
pub(super) struct Manner {
    pub(super) run: Run,
    pub(super) many: Many,
    pub(super) sessions: Sessions,
}

impl Manner {
    const fn each(run: Run) -> Self {
        Self {
            run,
            many: Many::OneByOne,
            sessions: Sessions::Each,
        }
    }

    fn on(self, backend: impl LockBackend, query: Query) -> Arc<dyn Rival> {
        let options = Options::new().sessions(self.sessions);
        Arc::new(Ours {
            locks: LockManager::with_options(backend, options),
            manner: self,
            query,
        })
    }

    /// By a guard, which nobody watches.
    pub(super) const GUARDED: Self = Self::each(GUARDED);

    /// By a section, which would be stopped if its lock were lost.
    pub(super) const WATCHED: Self = Self::each(WATCHED);

    /// By a guard; many at once in one batch.
    pub(super) const BATCHED: Self = Self {
        many: Many::AtOnce,
        ..Self::GUARDED
    };

    /// By a guard, all on one connection.
    pub(super) const SHARED: Self = Self {
        sessions: Sessions::Shared,
        ..Self::GUARDED
    };
}

/// How many locks are taken on one session.
#[derive(Clone, Copy)]
pub(super) enum Many {
    OneByOne,
    AtOnce,
}

/// How a section is run under a lock.
type Run = for<'a> fn(Lock, Section<'a>) -> BoxFuture<'a, ()>;

const GUARDED: Run = |lock, section| {
    Box::pin(async move {
        let guard = lock.lock().await.expect("the lock");
        section().await;
        guard.release().await.expect("an answer");
    })
};

const WATCHED: Run = |lock, section| {
    Box::pin(async move { lock.with(async || section().await).await.expect("the lock") })
};

pub(super) async fn on_tokio_postgres(place: Place, manner: Manner) -> Arc<dyn Rival> {
    let pool = pools::deadpool(&place);
    let backend = TokioPostgresBackend::from_pool(pool.clone()).with_options(options(&place));
    let query = move || {
        let pool = pool.clone();
        async move { pools::query_deadpool(&pool).await }.boxed()
    };
    manner.on(backend, Box::new(query))
}

pub(super) async fn on_sqlx(place: Place, manner: Manner) -> Arc<dyn Rival> {
    let pool = pools::sqlx(&place);
    let backend = SqlxBackend::from_pool(pool.clone()).with_options(options(&place));
    let query = move || {
        let pool = pool.clone();
        async move { pools::query_sqlx(&pool).await }.boxed()
    };
    manner.on(backend, Box::new(query))
}

pub(super) async fn in_memory(manner: Manner) -> Arc<dyn Rival> {
    manner.on(MemoryBackend::new(), Box::new(|| ready(()).boxed()))
}

fn options(place: &Place) -> PostgresOptions {
    let options = PostgresOptions::new();
    match place.for_locks {
        Some(sessions) => options.max_sessions(sessions),
        None => options,
    }
}

#[async_trait]
impl Rival for Ours {
    async fn cycle(&self, key: i64, section: Section<'_>) {
        (self.manner.run)(self.locks.keyed(key), section).await;
    }

    async fn try_lock(&self, key: i64) -> bool {
        match self.locks.keyed(key).try_lock().await.expect("an answer") {
            Some(guard) => guard.release().await.is_ok(),
            None => false,
        }
    }

    async fn hold(&self, keys: Range<i64>, section: Section<'_>) {
        let session = self.locks.session().await.expect("a session");
        let locks: Vec<_> = keys.map(|key| self.locks.keyed(key)).collect();
        let guards = match self.manner.many {
            Many::AtOnce => session.try_lock_each(&locks).await.expect("an answer"),
            Many::OneByOne => {
                let mut guards = Vec::new();
                for lock in &locks {
                    guards.push(session.try_lock(lock).await.expect("an answer"));
                }
                guards
            }
        };
        let guards: Vec<_> = guards
            .into_iter()
            .map(|guard| guard.expect("the lock"))
            .collect();
        section().await;
        match self.manner.many {
            Many::AtOnce => LockGuard::release_all(guards).await.expect("an answer"),
            Many::OneByOne => {
                for guard in guards {
                    guard.release().await.expect("an answer");
                }
            }
        }
        session.release().await.expect("a connection to give back");
    }

    async fn query(&self) {
        (self.query)().await;
    }
}
