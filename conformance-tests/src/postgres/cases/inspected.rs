use async_lock::OnceCell;

use crate::postgres::{Database, Server};

/// A second server for all cases of this process that look into one: it logs every statement,
/// counts them by kind, and has room for many locks.
#[derive(Debug)]
pub(super) struct Inspected {
    server: Server,
}

impl Inspected {
    pub(super) async fn shared() -> &'static Self {
        static SHARED: OnceCell<Inspected> = OnceCell::new();
        SHARED.get_or_init(Self::start).await
    }

    async fn start() -> Self {
        let server = Server::start(&[
            ("log_statement", "all"),
            ("max_locks_per_transaction", "256"),
        ]);
        let extension = "FROM pg_available_extensions WHERE name = 'pg_stat_statements'";
        let available = format!("SELECT count(*) {extension}");
        let available = server.client().await.value(&available).await;
        assert_eq!(
            available, "1",
            "these tests need PostgreSQL's extension pg_stat_statements, which is a package of \
             its own on some systems (postgresql-contrib)"
        );
        let library = "pg_stat_statements";
        server.set("shared_preload_libraries", library).await;
        server.restart();
        let client = server.client().await;
        client.run("CREATE EXTENSION pg_stat_statements").await;
        Self { server }
    }

    pub(super) async fn database(&self) -> Database {
        self.server.database().await
    }

    /// How many statements of ours such a server has run in the database so far.
    pub(super) fn statements(database: &Database) -> usize {
        let lines = database.log();
        lines
            .iter()
            .filter(|line| line.starts_with("LOG:") && is_ours(line))
            .count()
    }

    /// How many kinds of them, as `pg_stat_statements` tells them apart.
    pub(super) async fn kinds(&self, database: &Database) -> Vec<String> {
        let kinds = format!(
            "SELECT s.query FROM pg_stat_statements AS s JOIN pg_database AS d ON d.oid = s.dbid
             WHERE d.datname = '{}'",
            database.name()
        );
        let rows = self.server.client().await.rows(&kinds).await;
        let kinds = rows.into_iter().flatten().flatten();
        kinds.filter(|kind| is_ours(kind)).collect()
    }
}

/// The library qualifies every name, but for those of its own settings. What a pool sends of its
/// own accord has neither.
fn is_ours(statement: &str) -> bool {
    statement.contains("pg_catalog.") || statement.contains("advisory.")
}
