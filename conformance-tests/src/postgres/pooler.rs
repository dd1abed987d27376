use std::{env, fmt::Write as _, fs};

use super::{
    Database, Server, binaries,
    server::{PORTS, free_port},
    supervisor::Supervisor,
};

/// Names the pooler that all servers are behind.
const POOLER: &str = "ADVISORY_POOLER";

/// Settings that keep out of the way of the tests; a test's own come after them.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addr", "127.0.0.1"),
    ("unix_socket_dir", ""),
    // Roles of the tests' own are looked up on the server.
    ("auth_type", "trust"),
    ("auth_file", "users.txt"),
    ("auth_user", "postgres"),
    // sqlx sends it.
    ("ignore_startup_parameters", "extra_float_digits"),
    // The server is the one to say that it is full.
    ("default_pool_size", "300"),
    ("max_client_conn", "600"),
    // By default whoever comes when the server is away has to wait for 15 seconds.
    ("server_login_retry", "0.1"),
    ("pidfile", "pgbouncer.pid"),
];

/// When PgBouncer takes the server's connection back from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolMode {
    /// When the client goes.
    Session,
    /// After each transaction.
    Transaction,
    /// After each statement. There are no transactions.
    Statement,
}

impl PoolMode {
    /// That of the pooler that all servers are behind, if `ADVISORY_POOLER` has it so.
    ///
    /// # Panics
    ///
    /// If the variable names none of them.
    #[must_use]
    pub fn of_all() -> Option<Self> {
        match env::var(POOLER).ok()?.as_str() {
            "session" => Some(Self::Session),
            "transaction" => Some(Self::Transaction),
            other => panic!("{POOLER} is session or transaction, not {other:?}"),
        }
    }

    /// Whether the backends of the tests keep their locks in transactions, as behind all poolers in
    /// transaction mode.
    pub(super) fn pins_all() -> bool {
        Self::of_all() == Some(Self::Transaction)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Transaction => "transaction",
            Self::Statement => "statement",
        }
    }
}

/// A `PgBouncer` before a server.
///
/// It is stopped, and its folder deleted, as a [`Server`] is: when it is dropped, and when the test
/// process ends, for whatever reason.
///
/// # Examples
///
/// ```no_run
/// use advisory_conformance_tests::postgres::{PoolMode, Pooler, Server};
///
/// # async fn example() {
/// let server = Server::start(&[]);
/// let pooler = Pooler::start(&server, PoolMode::Transaction, &[("default_pool_size", "2")]);
/// let database = server.database().await;
/// println!("{}", pooler.url_of(&database));
/// println!("{}", pooler.log());
/// # }
/// ```
#[derive(Debug)]
pub struct Pooler {
    supervisor: Supervisor,
    port: u16,
}

impl Pooler {
    /// Starts one, with settings of its own.
    ///
    /// # Panics
    ///
    /// If the server was not started here, or the pooler cannot be.
    #[must_use]
    pub fn start(server: &Server, mode: PoolMode, settings: &[(&str, &str)]) -> Self {
        Self::before(server.port(), mode, settings)
    }

    /// The same for the server on this port.
    pub(super) fn before(server: u16, mode: PoolMode, settings: &[(&str, &str)]) -> Self {
        let program = binaries::pgbouncer();
        let supervisor = Supervisor::start(include_str!("pooler.sh"), &[program.as_os_str()]);
        let folder = supervisor.folder();
        let write = |file, text: &str| {
            fs::write(folder.join(file), text).expect("the folder is ours to write");
        };
        write("users.txt", "\"postgres\" \"\"\n");
        for _ in 0..PORTS {
            let port = free_port();
            write(
                "pgbouncer.ini",
                &configuration(server, port, mode, settings),
            );
            if supervisor.run("start") {
                return Self { supervisor, port };
            }
        }
        panic!("PgBouncer does not start:\n{}", supervisor.server_log());
    }

    /// The way to a database through it. Its server must be the pooler's.
    #[must_use]
    pub fn url_of(&self, database: &Database) -> String {
        self.url_to(database.name())
    }

    pub(super) fn url_to(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// What it has logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.supervisor.server_log()
    }
}

fn configuration(server: u16, port: u16, mode: PoolMode, settings: &[(&str, &str)]) -> String {
    let port = port.to_string();
    let own = [("listen_port", port.as_str()), ("pool_mode", mode.name())];
    let mut text = format!("[databases]\n* = host=127.0.0.1 port={server}\n[pgbouncer]\n");
    for (name, value) in SETTINGS.iter().chain(&own).chain(settings) {
        writeln!(text, "{name} = {value}").expect("a string takes all");
    }
    text
}
