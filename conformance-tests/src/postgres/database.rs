use std::{
    process,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{SystemTime, UNIX_EPOCH},
};

use super::RawClient;

/// A database that a test has to itself. Advisory locks are kept per database, so it is also a
/// lock space of its own.
///
/// It goes away by [`remove`](Self::remove), or with the server; on a server that `DATABASE_URL`
/// names it stays behind if the test process is killed.
#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
    server_url: String,
}

impl Database {
    /// Makes an empty database on the server.
    ///
    /// # Panics
    ///
    /// If the role of the URL may not.
    pub async fn create(server_url: &str) -> Self {
        let name = unused_name();
        let server = RawClient::connect(server_url).await;
        // Of `template0`, which nobody connects to: a template must not be in use.
        server
            .run(&format!("CREATE DATABASE {name} TEMPLATE template0"))
            .await;
        Self {
            url: with_database(server_url, &name),
            server_url: server_url.to_owned(),
            name,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its URL, in a form that every driver understands.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A client of it that the library has nothing to do with.
    pub async fn client(&self) -> RawClient {
        RawClient::connect(&self.url).await
    }

    /// Changes a setting for new sessions in it: `set("search_path = public, pg_catalog")`.
    pub async fn set(&self, setting: &str) {
        let server = RawClient::connect(&self.server_url).await;
        server
            .run(&format!("ALTER DATABASE {} SET {setting}", self.name))
            .await;
    }

    /// Drops it, and every session in it.
    pub async fn remove(&self) {
        let server = RawClient::connect(&self.server_url).await;
        server
            .run(&format!("DROP DATABASE {} WITH (FORCE)", self.name))
            .await;
    }
}

/// A name that no other process uses on the same server, now or before.
fn unused_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |time| time.as_micros());
    format!("advisory_{}_{now:x}_{number}", process::id())
}

/// Puts the name of another database into a URL.
fn with_database(url: &str, name: &str) -> String {
    let (address, options) = match url.split_once('?') {
        Some((address, options)) => (address, format!("?{options}")),
        None => (url, String::new()),
    };
    let (scheme, rest) = address.split_once("://").expect("a URL has a scheme");
    let host = rest.split('/').next().unwrap_or_default();
    format!("{scheme}://{host}/{name}{options}")
}

#[test]
fn the_database_of_a_url_is_replaced() {
    for (url, expected) in [
        ("postgres://host", "postgres://host/x"),
        ("postgres://host:1/", "postgres://host:1/x"),
        ("postgresql://me:pw@host/old", "postgresql://me:pw@host/x"),
        ("postgres://host/old?a=b/c", "postgres://host/x?a=b/c"),
        ("postgres://host?a=b", "postgres://host/x?a=b"),
    ] {
        assert_eq!(with_database(url, "x"), expected);
    }
}
