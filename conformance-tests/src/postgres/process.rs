use std::{
    env, fs,
    io::{BufRead, BufReader, Read as _, Write as _, stdin, stdout},
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use advisory_core::LockManager;

use super::{
    Database, Host, Postgres, RawClient, Server,
    left_out::{left_out, sessions_end},
    options,
};
use crate::{Runtime, sync::pause};

/// What a client is told.
const URL: &str = "ADVISORY_CLIENT_URL";
const KEY: &str = "ADVISORY_CLIENT_KEY";
const DEAD_HOST: &str = "ADVISORY_CLIENT_DEAD_HOST";

/// What it says.
const ASKS: &str = "client: asks";
pub(super) const HOLDS: &str = "client: holds";

/// The bound for hosts that vanish.
const BOUND: Duration = Duration::from_secs(4);

/// What a busy machine, and a slice of the rival's wait, add to a bound.
const MARGIN: Duration = Duration::from_secs(4);

/// How soon the server must be rid of a process that was killed: its slice, and a margin.
const KILLED: Duration = Duration::from_secs(2);

/// The clients of this module's tests, which are processes of their own: the test binary, started
/// once more to run the test of this name alone. Without the environment of a client it does
/// nothing.
pub fn client(harness: &Postgres, runtime: &impl Runtime) {
    let Some((url, key)) = of_environment() else {
        return;
    };
    let options = match env::var(DEAD_HOST) {
        Ok(seconds) => {
            let seconds = seconds.parse().expect("a number");
            options().dead_host_within(Duration::from_secs(seconds))
        }
        Err(_) => options().dead_host_unbounded(),
    };
    runtime.block_on(Box::pin(async move {
        let backend = harness.driver().backend(&url, 1, options).await;
        let locks = LockManager::new(backend);
        say(ASKS);
        let guard = locks.keyed(key).lock().await.expect("the server is there");
        say(HOLDS);
        // Ends when whoever has started it closes the pipe, or has gone.
        let _ = stdin().read_to_end(&mut Vec::new());
        guard.release().await.expect("it was held to the end");
    }));
}

/// The database and the key of a client; `None` if this process is not one.
pub(super) fn of_environment() -> Option<(String, i64)> {
    let (url, key) = (env::var(URL).ok()?, env::var(KEY).ok()?);
    Some((url, key.parse().expect("a key")))
}

/// A holder's host vanishes: a rival gets the lock within the bound; and without one it does not.
pub async fn a_vanished_host_loses_its_lock(harness: &Postgres, client: &str) {
    if left_out("dead_host::a_vanished_host_loses_its_lock") {
        return;
    }
    let Some(host) = Host::set_up() else { return };
    let server = Server::start(&[("listen_addresses", "*")]);
    server.admit_neighbours().await;
    let database = server.database().await;
    let url = database.url().replace("127.0.0.1", &host.gateway());
    let mut bounded = Client::start(Some(&host), client, &url, 1, Some(BOUND));
    let mut unbounded = Client::start(Some(&host), client, &url, 2, None);
    bounded.until_it_says(HOLDS);
    unbounded.until_it_says(HOLDS);

    let backend = harness.driver().backend(database.url(), 1, options()).await;
    let rival = LockManager::new(backend);
    let observer = database.client().await;
    assert!(rival.keyed(1_i64).try_lock().await.unwrap().is_none());
    host.vanish();
    let vanished = Instant::now();
    let guard = rival.keyed(1_i64).lock_timeout(BOUND + MARGIN).await;
    let guard = guard.expect("the server notices within the bound");
    println!(
        "the lock was free {:?} after its host had vanished",
        vanished.elapsed()
    );
    assert_eq!(
        holders(&observer, 2).await,
        1,
        "without a bound it is not noticed"
    );
    guard.release().await.unwrap();
    database.assert_log_is_clean();
}

/// A waiting process is killed: the server is rid of it when its slice ends.
pub async fn a_killed_waiter_is_gone_soon(harness: &Postgres, client: &str) {
    let database = Server::shared().database().await;
    let locks = manager(harness, &database).await;
    let observer = database.client().await;
    let guard = locks.keyed(1_i64).lock().await.unwrap();
    for _ in 0..3 {
        let mut waiter = Client::start(None, client, database.url(), 1, None);
        waiter.until_it_says(ASKS);
        until(Duration::from_secs(20), "waits", async || {
            waiters(&observer).await == 1
        })
        .await;
        // The other session is the holder's own.
        assert!(sessions(&observer).await == 2 || !sessions_end());
        waiter.kill();
        until(KILLED, "is gone", async || {
            let ended = sessions(&observer).await == 1 || !sessions_end();
            ended && waiters(&observer).await == 0
        })
        .await;
    }
    guard.release().await.unwrap();
    database.remove().await;
}

/// A holding process is killed: its lock is free at once.
pub async fn a_killed_holder_loses_its_lock(harness: &Postgres, client: &str) {
    let database = Server::shared().database().await;
    let locks = manager(harness, &database).await;
    let observer = database.client().await;
    for _ in 0..3 {
        let mut holder = Client::start(None, client, database.url(), 1, None);
        holder.until_it_says(HOLDS);
        assert_eq!(holders(&observer, 1).await, 1);
        holder.kill();
        let guard = locks.keyed(1_i64).lock_timeout(KILLED).await;
        guard.expect("it is free at once").release().await.unwrap();
    }
    database.remove().await;
}

async fn manager(harness: &Postgres, database: &Database) -> LockManager {
    let options = options();
    LockManager::new(harness.driver().backend(database.url(), 1, options).await)
}

async fn holders(observer: &RawClient, key: i64) -> usize {
    count(
        observer,
        &format!("locktype = 'advisory' AND granted AND objid = {key}"),
    )
    .await
}

async fn waiters(observer: &RawClient) -> usize {
    count(observer, "locktype = 'advisory' AND NOT granted").await
}

async fn count(observer: &RawClient, which: &str) -> usize {
    let sql = format!(
        "SELECT count(*) FROM pg_locks WHERE {which} AND database =
           (SELECT oid FROM pg_database WHERE datname = current_database())"
    );
    observer.value(&sql).await.parse().expect("a number")
}

async fn sessions(observer: &RawClient) -> usize {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
               AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
    observer.value(sql).await.parse().expect("a number")
}

async fn until(limit: Duration, what: &str, condition: impl AsyncFn() -> bool) {
    let started = Instant::now();
    loop {
        let asked = started.elapsed();
        if condition().await {
            return;
        }
        assert!(asked <= limit, "not within {limit:?}: it {what}");
        pause(Duration::from_millis(10)).await;
    }
}

/// A client that is a process of its own. It is killed with its drop.
#[derive(Debug)]
pub(super) struct Client {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Client {
    pub(super) fn start(
        host: Option<&Host>,
        test: &str,
        url: &str,
        key: i64,
        dead_host: Option<Duration>,
    ) -> Self {
        let program = env::current_exe().expect("a test binary");
        let program = program.to_str().expect("a path of cargo's");
        let mut command = match host {
            Some(host) => host.command("env"),
            None => Command::new("env"),
        };
        // By `env`, since `sudo` hands none on.
        command
            .arg(format!("{URL}={url}"))
            .arg(format!("{KEY}={key}"));
        if let Some(bound) = dead_host {
            command.arg(format!("{DEAD_HOST}={}", bound.as_secs()));
        }
        let mut process = command
            .args([program, test, "--exact", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the test binary starts");
        let output = process.stdout.take().expect("it is piped");
        Self {
            process,
            output: BufReader::new(output),
        }
    }

    /// Reads on to that line; the test harness of the process has things to say, too.
    pub(super) fn until_it_says(&mut self, word: &str) {
        let mut line = String::new();
        while !line.trim_end().ends_with(word) {
            line.clear();
            let read = self.output.read_line(&mut line).expect("text");
            assert!(read > 0, "the client has ended without saying {word:?}");
        }
    }

    /// Sends it an empty line.
    pub(super) fn go_on(&self) {
        let mut input = self.process.stdin.as_ref().expect("it is piped");
        input.write_all(b"\n").expect("it lives");
    }

    /// Stops all that it does, and returns when that is done. Its sockets stay open.
    pub(super) fn freeze(&self) {
        self.signal("STOP");
        while !self.is_frozen() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Has it go on as if nothing had happened.
    pub(super) fn thaw(&self) {
        self.signal("CONT");
    }

    fn is_frozen(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()));
        let status = status.expect("Linux, and it lives");
        status.contains("\nState:\tT ")
    }

    fn signal(&self, name: &str) {
        let signal = format!("kill -{name} {}", self.process.id());
        let sent = Command::new("sh").args(["-c", &signal]).status();
        assert!(sent.expect("a shell").success(), "{signal}");
    }

    /// As `kill -9` does.
    fn kill(mut self) {
        self.process.kill().expect("it lives");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(super) fn say(word: &str) {
    // Not by a macro, whose output the test harness may keep to itself.
    let mut output = stdout();
    let said = writeln!(output, "{word}").and_then(|()| output.flush());
    said.expect("somebody listens");
}
