use std::{ops::Range, sync::Arc};

use advisory::{
    Lock, LockManager, MemoryBackend, PostgresOptions, SqlxBackend, TokioPostgresBackend,
};
use async_trait::async_trait;
use futures::future::BoxFuture;

use super::{Place, Rival, Section, pools};

/// This library, on one of its backends.
struct Ours {
    locks: LockManager,
    run: Run,
    query: Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
}

/// How a section is run under a lock.
type Run = for<'a> fn(Lock, Section<'a>) -> BoxFuture<'a, ()>;

/// By a guard, which nobody watches.
pub(super) const GUARDED: Run = |lock, section| {
    Box::pin(async move {
        let guard = lock.lock().await.expect("the lock");
        section().await;
        guard.release().await.expect("an answer");
    })
};

/// By a section, which would be stopped if its lock were lost.
pub(super) const WATCHED: Run =
    |lock, section| Box::pin(async move { lock.with(|| section()).await.expect("the lock") });

pub(super) async fn on_tokio_postgres(place: Place, run: Run) -> Arc<dyn Rival> {
    let pool = pools::deadpool(&place);
    let backend = TokioPostgresBackend::from_pool(pool.clone()).with_options(options(&place));
    Arc::new(Ours {
        locks: LockManager::new(backend),
        run,
        query: Box::new(move || {
            let pool = pool.clone();
            Box::pin(async move { pools::query_deadpool(&pool).await })
        }),
    })
}

pub(super) async fn on_sqlx(place: Place, run: Run) -> Arc<dyn Rival> {
    let pool = pools::sqlx(&place);
    let backend = SqlxBackend::from_pool(pool.clone()).with_options(options(&place));
    Arc::new(Ours {
        locks: LockManager::new(backend),
        run,
        query: Box::new(move || {
            let pool = pool.clone();
            Box::pin(async move { pools::query_sqlx(&pool).await })
        }),
    })
}

pub(super) async fn in_memory(run: Run) -> Arc<dyn Rival> {
    Arc::new(Ours {
        locks: LockManager::new(MemoryBackend::new()),
        run,
        query: Box::new(|| Box::pin(async {})),
    })
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
        (self.run)(self.locks.keyed(key), section).await;
    }

    async fn try_lock(&self, key: i64) -> bool {
        match self.locks.keyed(key).try_lock().await.expect("an answer") {
            Some(guard) => guard.release().await.is_ok(),
            None => false,
        }
    }

    async fn hold(&self, keys: Range<i64>, section: Section<'_>) {
        let session = self.locks.session().await.expect("a session");
        let mut guards = Vec::new();
        for key in keys {
            let guard = session.try_lock(&self.locks.keyed(key)).await;
            guards.push(guard.expect("an answer").expect("the lock"));
        }
        section().await;
        for guard in guards {
            guard.release().await.expect("an answer");
        }
        session.release().await.expect("a connection to give back");
    }

    async fn query(&self) {
        (self.query)().await;
    }
}
