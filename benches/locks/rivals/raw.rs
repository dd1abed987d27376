use std::{ops::Range, sync::Arc};

use async_trait::async_trait;
use tokio_postgres::{Client, NoTls, Statement};

use super::{Place, Rival, Section, pools};

/// What the protocol and the driver allow: one connection, two statements, and nobody else.
struct Raw {
    client: Client,
    acquire: Statement,
    attempt: Statement,
    release: Statement,
}

pub(super) async fn open(place: Place) -> Arc<dyn Rival> {
    let connected = pools::config(&place).connect(NoTls).await;
    let (client, connection) = connected.expect("a connection");
    tokio::spawn(connection);
    let prepare = async |sql| client.prepare(sql).await.expect("valid SQL");
    Arc::new(Raw {
        acquire: prepare(pools::acquire(&place)).await,
        attempt: prepare(pools::TRY).await,
        release: prepare(pools::RELEASE).await,
        client,
    })
}

impl Raw {
    async fn done(&self, statement: &Statement, key: i64) -> bool {
        pools::is_done(self.client.query_one(statement, &[&key]).await)
    }
}

#[async_trait]
impl Rival for Raw {
    async fn cycle(&self, key: i64, section: Section<'_>) {
        assert!(self.done(&self.acquire, key).await);
        section().await;
        assert!(self.done(&self.release, key).await);
    }

    async fn try_lock(&self, key: i64) -> bool {
        self.done(&self.attempt, key).await && self.done(&self.release, key).await
    }

    async fn hold(&self, keys: Range<i64>, section: Section<'_>) {
        for key in keys.clone() {
            assert!(self.done(&self.attempt, key).await);
        }
        section().await;
        for key in keys {
            assert!(self.done(&self.release, key).await);
        }
    }

    async fn query(&self) {
        let answer = self.client.simple_query("SELECT 1").await;
        answer.expect("an answer");
    }
}
