use crate::postgres::PostgresEnv;

/// A role that may do nothing but connect, with a name of the case's own.
#[derive(Debug)]
pub(super) struct Role {
    name: String,
    url: String,
}

impl Role {
    pub(super) async fn create(env: &PostgresEnv) -> Self {
        let database = env.database();
        // Roles are the whole server's, as the names of databases are.
        let name = format!("{}_role", database.name());
        let role = Self {
            url: with_user(database.url(), &name),
            name,
        };
        let name = &role.name;
        let create = format!("CREATE ROLE {name} LOGIN PASSWORD '{name}'");
        env.client().await.run(&create).await;
        role
    }

    /// Changes a setting for its new sessions: `set("lock_timeout = '1s'")`.
    pub(super) async fn set(&self, env: &PostgresEnv, setting: &str) {
        let set = format!("ALTER ROLE {} SET {setting}", self.name);
        env.client().await.run(&set).await;
    }

    pub(super) async fn limit_connections(&self, env: &PostgresEnv, most: usize) {
        let limit = format!("ALTER ROLE {} CONNECTION LIMIT {most}", self.name);
        env.client().await.run(&limit).await;
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The case's database, as this role.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Drops it. A case that fails before that leaves it behind.
    pub(super) async fn remove(self, env: &PostgresEnv) {
        let drop = format!("DROP ROLE {}", self.name);
        env.client().await.run(&drop).await;
    }
}

/// Puts a user whose password is its name into a URL.
fn with_user(url: &str, user: &str) -> String {
    let (scheme, rest) = url.split_once("://").expect("a URL has a scheme");
    let (authority, path) = rest.split_once('/').expect("a URL of a database");
    let host = match authority.rsplit_once('@') {
        Some((_, host)) => host,
        None => authority,
    };
    format!("{scheme}://{user}:{user}@{host}/{path}")
}

#[test]
fn the_user_of_a_url_is_replaced() {
    for (url, expected) in [
        ("postgres://host/db", "postgres://x:x@host/db"),
        ("postgres://me@host:1/db", "postgres://x:x@host:1/db"),
        (
            "postgres://me:p@w@host/db?a=@/",
            "postgres://x:x@host/db?a=@/",
        ),
    ] {
        assert_eq!(with_user(url, "x"), expected);
    }
}
