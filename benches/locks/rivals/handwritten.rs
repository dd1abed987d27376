use std::{ops::Range, sync::Arc};

use async_trait::async_trait;
use deadpool_postgres::{Object, Pool};

use super::{Place, Rival, Section, pools};

/// What one writes without a library: a pooled connection and a pair of prepared statements. It
/// notices no loss, knows no timeout, and a cancelled wait leaves a connection that holds a lock.
struct Handwritten {
    pool: Pool,
    acquire: &'static str,
}

pub(super) async fn open(place: Place) -> Arc<dyn Rival> {
    Arc::new(Handwritten {
        pool: pools::deadpool(&place),
        acquire: pools::acquire(&place),
    })
}

/// Runs one of the statements, which is prepared once for each connection.
async fn done(client: &Object, sql: &str, key: i64) -> bool {
    let statement = client.prepare_cached(sql).await.expect("valid SQL");
    pools::is_done(client.query_one(&statement, &[&key]).await)
}

#[async_trait]
impl Rival for Handwritten {
    async fn cycle(&self, key: i64, section: Section<'_>) {
        let client = self.pool.get().await.expect("a connection");
        assert!(done(&client, self.acquire, key).await);
        section().await;
        assert!(done(&client, pools::RELEASE, key).await);
    }

    async fn try_lock(&self, key: i64) -> bool {
        let client = self.pool.get().await.expect("a connection");
        done(&client, pools::TRY, key).await && done(&client, pools::RELEASE, key).await
    }

    async fn hold(&self, keys: Range<i64>, section: Section<'_>) {
        let client = self.pool.get().await.expect("a connection");
        for key in keys.clone() {
            assert!(done(&client, pools::TRY, key).await);
        }
        section().await;
        for key in keys {
            assert!(done(&client, pools::RELEASE, key).await);
        }
    }

    async fn query(&self) {
        pools::query_deadpool(&self.pool).await;
    }
}
