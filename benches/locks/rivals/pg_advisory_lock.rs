use std::{ops::Range, sync::Arc};

use async_trait::async_trait;
use sqlx::{
    Either, PgPool,
    postgres::{PgAdvisoryLock, PgAdvisoryLockKey},
};

use super::{Place, Rival, Section, pools};

/// What sqlx itself has to offer.
struct PooledLock {
    pool: PgPool,
}

pub(super) async fn open(place: Place) -> Arc<dyn Rival> {
    let pool = pools::sqlx(&place);
    Arc::new(PooledLock { pool })
}

fn lock(key: i64) -> PgAdvisoryLock {
    PgAdvisoryLock::with_key(PgAdvisoryLockKey::BigInt(key))
}

#[async_trait]
impl Rival for PooledLock {
    async fn cycle(&self, key: i64, section: Section<'_>) {
        let connection = self.pool.acquire().await.expect("a connection");
        let lock = lock(key);
        let guard = lock.acquire(connection).await.expect("the lock");
        section().await;
        guard.release_now().await.expect("an answer");
    }

    async fn try_lock(&self, key: i64) -> bool {
        let connection = self.pool.acquire().await.expect("a connection");
        let lock = lock(key);
        match lock.try_acquire(connection).await.expect("an answer") {
            Either::Left(guard) => guard.release_now().await.is_ok(),
            Either::Right(_) => false,
        }
    }

    async fn hold(&self, keys: Range<i64>, section: Section<'_>) {
        // Guards of several locks cannot share a connection, so these do without.
        let mut connection = self.pool.acquire().await.expect("a connection");
        let locks: Vec<_> = keys.map(lock).collect();
        for lock in &locks {
            let guard = lock.acquire(&mut *connection).await.expect("the lock");
            guard.leak();
        }
        section().await;
        for lock in &locks {
            let released = lock.force_release(&mut *connection).await;
            assert!(released.expect("an answer").1);
        }
    }

    async fn query(&self) {
        pools::query_sqlx(&self.pool).await;
    }
}
