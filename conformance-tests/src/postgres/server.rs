use std::{
    env, fmt::Write as _, fs::OpenOptions, io::Write as _, iter, net::TcpListener, path::Path,
    sync::OnceLock,
};

use super::{
    Database, PoolMode, Pooler, RawClient, binaries,
    log::{DatabaseLog, LINE_PREFIX},
    supervisor::Supervisor,
};

/// Settings that make the server quick, quiet and big enough; a test's own come after them.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", "127.0.0.1"),
    ("fsync", "off"),
    ("max_connections", "300"),
    ("log_line_prefix", LINE_PREFIX),
];

/// How many ports are tried. Somebody else may take one between our look and the server's.
pub(super) const PORTS: usize = 5;

/// A PostgreSQL server for tests.
///
/// A server that was started here is stopped, and its folder deleted, when it is dropped, and when
/// the test process ends, for whatever reason: a `kill -9` will do.
///
/// With `ADVISORY_POOLER` it has a [`Pooler`] before it, through which its [`url`](Self::url) and those
/// of its databases lead. Raw clients go straight to it all the same.
///
/// # Examples
///
/// ```no_run
/// use advisory_conformance_tests::postgres::Server;
///
/// let server = Server::start(&[("deadlock_timeout", "100ms")]);
/// println!("{}", server.url());
/// server.restart();
/// println!("{}", server.log());
/// ```
#[derive(Debug)]
pub struct Server {
    /// Dropped first.
    pooler: Option<Pooler>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Started here.
    Own { supervisor: Supervisor, port: u16 },
    /// Somebody else's.
    Named(String),
}

impl Server {
    /// The server that all cases of this process share: the one that `DATABASE_URL` names, whose
    /// role must be allowed to create databases, or else one that is started on the first call.
    ///
    /// # Panics
    ///
    /// If there is none, and none can be started, or a named one ought to have a pooler before it.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| match env::var("DATABASE_URL") {
            Ok(url) => Self::named(url),
            Err(_) => Self::start(&[]),
        })
    }

    fn named(url: String) -> Self {
        assert!(
            PoolMode::of_all().is_none(),
            "a pooler is put only before servers that are started here, not that of DATABASE_URL"
        );
        Self {
            pooler: None,
            kind: Kind::Named(url),
        }
    }

    /// A server of its own, for tests that stop it or need their own settings.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    #[must_use]
    pub fn start(settings: &[(&str, &str)]) -> Self {
        Self::launch(supervisor(None), settings)
    }

    /// A standby that follows this server, until it is [promoted](Self::promote). The server is
    /// stopped and started again for it.
    ///
    /// # Panics
    ///
    /// If the server was not started here, or the standby cannot be.
    #[must_use]
    pub fn standby(&self) -> Self {
        self.stop();
        let standby = supervisor(Some(&self.folder().join("data")));
        self.start_again();
        let primary = format!("host=127.0.0.1 port={} user=postgres", self.port());
        Self::launch(standby, &[("primary_conninfo", &primary)])
    }

    fn launch(supervisor: Supervisor, settings: &[(&str, &str)]) -> Self {
        configure(supervisor.folder(), settings);
        for _ in 0..PORTS {
            let port = free_port();
            if supervisor.run(&format!("start {port}")) {
                return Self {
                    pooler: PoolMode::of_all().map(|mode| Pooler::before(port, mode, &[])),
                    kind: Kind::Own { supervisor, port },
                };
            }
        }
        panic!(
            "PostgreSQL does not start:\n{}{}",
            supervisor.setup_log(),
            supervisor.server_log()
        );
    }

    /// Where it is: a URL that every driver understands, of a role that may do anything. Another
    /// process that gets it as its `DATABASE_URL` shares the server.
    #[must_use]
    pub fn url(&self) -> String {
        match &self.pooler {
            Some(pooler) => pooler.url_to("postgres"),
            None => self.direct_url(),
        }
    }

    /// The same past the pooler that may be before it, for a look at a single connection.
    #[must_use]
    pub fn direct_url(&self) -> String {
        match &self.kind {
            Kind::Own { port, .. } => format!("postgres://postgres@127.0.0.1:{port}/postgres"),
            Kind::Named(url) => url.clone(),
        }
    }

    /// A client of its maintenance database.
    pub async fn client(&self) -> RawClient {
        RawClient::connect(&self.direct_url()).await
    }

    /// A new, empty database.
    pub async fn database(&self) -> Database {
        let database = Database::create(&self.direct_url()).await;
        let database = match &self.pooler {
            Some(pooler) => database.behind(pooler),
            None => database,
        };
        match &self.kind {
            Kind::Own { supervisor, .. } => {
                let name = database.name().to_owned();
                database.with_log(DatabaseLog::new(supervisor.log_file(), name))
            }
            Kind::Named(_) => database,
        }
    }

    /// Changes a setting for new sessions, and for running ones if it can be.
    pub async fn set(&self, name: &str, value: &str) {
        let client = self.client().await;
        client
            .run(&format!("ALTER SYSTEM SET {name} = {}", quoted(value)))
            .await;
        client.run("SELECT pg_reload_conf()").await;
    }

    /// Lets in whoever is on a network of this host, besides this host itself.
    ///
    /// # Panics
    ///
    /// If the server was not started here.
    pub async fn admit_neighbours(&self) {
        append(
            &self.folder().join("data/pg_hba.conf"),
            "host all all samenet trust\n",
        );
        self.client().await.run("SELECT pg_reload_conf()").await;
    }

    /// The folder that its data and its log are in.
    ///
    /// # Panics
    ///
    /// As all methods from here on, if the server is named by `DATABASE_URL`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.supervisor().folder()
    }

    /// What it has logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.supervisor().server_log()
    }

    /// Stops it in good order; its clients are told.
    pub fn stop(&self) {
        self.control("stop");
    }

    /// Stops it as a crash does: no client is told, and its next start has to recover.
    pub fn crash(&self) {
        self.control("crash");
    }

    /// Starts it again, on the same port, after a stop or a crash.
    pub fn start_again(&self) {
        self.control(&format!("start {}", self.port()));
    }

    /// Stops and starts it.
    pub fn restart(&self) {
        self.stop();
        self.start_again();
    }

    /// Makes a primary of a standby.
    pub fn promote(&self) {
        self.control("promote");
    }

    fn control(&self, command: &str) {
        let supervisor = self.supervisor();
        assert!(
            supervisor.run(command),
            "{command} failed:\n{}",
            supervisor.setup_log()
        );
    }

    pub(super) fn port(&self) -> u16 {
        match &self.kind {
            Kind::Own { port, .. } => *port,
            Kind::Named(_) => panic!("the server of DATABASE_URL is not ours to start"),
        }
    }

    fn supervisor(&self) -> &Supervisor {
        match &self.kind {
            Kind::Own { supervisor, .. } => supervisor,
            Kind::Named(_) => panic!("the server of DATABASE_URL is not ours to look into"),
        }
    }
}

/// Owns a new cluster: an empty one, or a standby's of the primary whose data is in this folder.
fn supervisor(primary: Option<&Path>) -> Supervisor {
    let binaries = binaries::folder();
    let arguments = iter::once(&*binaries).chain(primary);
    let arguments: Vec<_> = arguments.map(Path::as_os_str).collect();
    Supervisor::start(include_str!("server.sh"), &arguments)
}

/// Adds settings to the configuration of a server that has not been started.
fn configure(folder: &Path, settings: &[(&str, &str)]) {
    let sockets = folder.to_str().expect("a folder that mktemp named");
    let sockets = [("unix_socket_directories", sockets)];
    let mut text = String::new();
    for (name, value) in SETTINGS.iter().chain(&sockets).chain(settings) {
        writeln!(text, "{name} = {}", quoted(value)).expect("a string takes all");
    }
    append(&folder.join("data/postgresql.conf"), &text);
}

fn append(file: &Path, text: &str) {
    OpenOptions::new()
        .append(true)
        .open(file)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .expect("the configuration is ours to write");
}

/// The value as a literal, of SQL and of the configuration file.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

pub(super) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}
