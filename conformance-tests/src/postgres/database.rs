use std::{
    process,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{SystemTime, UNIX_EPOCH},
};

use super::{PoolMode, Pooler, RawClient, log::DatabaseLog};

/// A database that a test has to itself. Advisory locks are kept per database, so it is also a
/// lock space of its own.
///
/// It goes away by [`remove`](Self::remove), or with the server; on a server that `DATABASE_URL`
/// names it stays behind if the test process is killed.
///
/// The server's log must have nothing to say about what the library does in it: no warning, and no
/// error but those that a test [expects](Self::expect_in_log). The log of a server that was not
/// started here cannot be looked into.
#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
    /// Past the pooler that may be before the server.
    direct_url: String,
    server_url: String,
    log: Option<DatabaseLog>,
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
        let direct_url = with_database(server_url, &name);
        Self {
            url: direct_url.clone(),
            direct_url,
            server_url: server_url.to_owned(),
            name,
            log: None,
        }
    }

    /// The same, with the log of its server.
    pub(super) fn with_log(mut self, log: DatabaseLog) -> Self {
        self.log = Some(log);
        self
    }

    /// A URL of it for programs that do not pin their locks: past a pooler in transaction mode.
    #[must_use]
    pub fn url_without_pins(&self) -> &str {
        if PoolMode::pins_all() {
            &self.direct_url
        } else {
            &self.url
        }
    }

    /// The same, with its users led through a pooler.
    pub(super) fn behind(mut self, pooler: &Pooler) -> Self {
        self.url = pooler.url_of(&self);
        self
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
        RawClient::connect(&self.direct_url).await
    }

    /// Changes a setting for new sessions in it: `set("search_path = public, pg_catalog")`.
    pub async fn set(&self, setting: &str) {
        let server = RawClient::connect(&self.server_url).await;
        server
            .run(&format!("ALTER DATABASE {} SET {setting}", self.name))
            .await;
    }

    /// Announces a complaint that the test provokes, by a part of its text. Sessions that are ended
    /// by force and connections that are closed need no announcement.
    pub fn expect_in_log(&self, text: &'static str) {
        if let Some(log) = &self.log {
            log.expect(text);
        }
    }

    /// What the server has logged about the sessions in it, those of raw clients excepted.
    pub(super) fn log(&self) -> Vec<String> {
        self.log
            .as_ref()
            .map(DatabaseLog::lines)
            .unwrap_or_default()
    }

    /// Looks into the server's log.
    ///
    /// # Panics
    ///
    /// If the server has complained about what the library did in it.
    pub fn assert_log_is_clean(&self) {
        if let Some(log) = &self.log {
            log.assert_no_complaint();
        }
    }

    /// Drops it, and every session in it.
    ///
    /// # Panics
    ///
    /// As [`assert_log_is_clean`](Self::assert_log_is_clean).
    pub async fn remove(&self) {
        self.discard().await;
        self.assert_log_is_clean();
    }

    /// Drops it, whatever has happened in it.
    pub(super) async fn discard(&self) {
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
