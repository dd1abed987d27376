use advisory_core::{LockKey, LockMode, spi::Claim};
use async_trait::async_trait;

use super::{RawClient, client::APPLICATION_NAME};
use crate::{Observer, SeenLock};

/// Looks at the locks of a database in `pg_locks`.
#[derive(Debug)]
pub(super) struct PostgresObserver {
    client: RawClient,
}

impl PostgresObserver {
    pub(super) fn new(client: RawClient) -> Self {
        Self { client }
    }

    async fn locks(&self, granted: bool) -> Vec<SeenLock> {
        let rows = self
            .client
            .rows(&format!(
                "SELECT pid, classid::int8, objid::int8, objsubid, mode FROM pg_locks
                 WHERE locktype = 'advisory' AND granted = {granted} AND database =
                   (SELECT oid FROM pg_database WHERE datname = current_database())",
            ))
            .await;
        rows.iter().map(|row| seen(row)).collect()
    }
}

#[async_trait]
impl Observer for PostgresObserver {
    async fn held(&self) -> Vec<SeenLock> {
        self.locks(true).await
    }

    async fn waiters(&self, key: LockKey) -> usize {
        let waiting = self.locks(false).await;
        waiting.iter().filter(|lock| lock.claim.key == key).count()
    }

    async fn sessions(&self) -> Vec<i64> {
        let rows = self
            .client
            .rows(&format!(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database()
                 AND backend_type = 'client backend' AND application_name <> '{APPLICATION_NAME}'"
            ))
            .await;
        rows.iter().map(|row| session(row)).collect()
    }

    async fn terminate(&self, session: i64) {
        let ended = format!("SELECT pg_terminate_backend({session}, 10000)");
        assert_eq!(self.client.value(&ended).await, "t");
    }
}

fn session(row: &[Option<String>]) -> i64 {
    number(&row[0])
}

fn seen(row: &[Option<String>]) -> SeenLock {
    let [_, class, object, kind, mode] = row else {
        panic!("not a row of ours: {row:?}");
    };
    let (class, object) = (half(class), half(object));
    // The last of the three numbers tells the key spaces apart.
    let key = match number(kind) {
        1 => LockKey::BigInt((i64::from(class) << 32) | (i64::from(object) & 0xffff_ffff)),
        2 => LockKey::Pair(class, object),
        other => panic!("an advisory lock has no objsubid {other}"),
    };
    let mode = match mode.as_deref() {
        Some("ExclusiveLock") => LockMode::Exclusive,
        Some("ShareLock") => LockMode::Shared,
        other => panic!("an advisory lock has no mode {other:?}"),
    };
    SeenLock {
        claim: Claim { key, mode },
        session: session(row),
    }
}

/// One half of a key, which the server shows as an unsigned number.
fn half(text: &Option<String>) -> i32 {
    u32::try_from(number(text)).expect("an oid").cast_signed()
}

fn number(text: &Option<String>) -> i64 {
    let text = text.as_deref().expect("not null");
    text.parse().expect("a number")
}
