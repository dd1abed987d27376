//! What programs are run against: the double, and a real server.

use std::{collections::BTreeSet, time::Duration};

use advisory::{
    LockBackend, LockKey, LockMode, MemoryBackend, SessionId, TokioPostgresBackend, spi::Claim,
};
use advisory_conformance_tests::postgres::{Database, RawClient, Server as Fixture};
use async_trait::async_trait;
use deadpool_postgres::{Manager, Pool};
use tokio_postgres::NoTls;

/// A lock server, as the model looks at it and interferes with it.
#[async_trait(?Send)]
pub(crate) trait Server {
    /// A backend as one more of the server's clients has it.
    fn backend(&self) -> Box<dyn LockBackend>;

    /// All that is held, and all that is waited for, at one moment.
    async fn look(&self) -> Vec<Seen>;

    /// Ends a session by force, and returns when it has ended.
    async fn kill(&self, session: i64);

    /// Whether a try is granted what a wait would be, though somebody is queued in front.
    fn tries_jump_queues(&self) -> bool;
}

/// A lock that is held or waited for.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The number of the session.
    pub(crate) session: i64,
    pub(crate) claim: Claim,
    pub(crate) granted: bool,
    /// Of a wait: the sessions that it waits for.
    pub(crate) blockers: Vec<i64>,
    /// Of a wait: whether the server has looked if it is part of a deadlock.
    pub(crate) checked: bool,
}

impl Seen {
    fn blocks(&self, wait: &Self) -> bool {
        self.claim.key == wait.claim.key
            && self.session != wait.session
            && self.claim.mode.conflicts_with(wait.claim.mode)
    }
}

/// Whether sessions wait for each other. A server puts an end to that.
pub(crate) fn has_cycle(look: &[Seen]) -> bool {
    let blockers = |session: i64| {
        let waits = look.iter().filter(move |seen| seen.session == session);
        waits.flat_map(|wait| wait.blockers.iter().copied())
    };
    look.iter().any(|start| {
        let mut reached = BTreeSet::new();
        let mut open: Vec<_> = blockers(start.session).collect();
        while let Some(session) = open.pop() {
            if reached.insert(session) {
                open.extend(blockers(session));
            }
        }
        reached.contains(&start.session)
    })
}

/// The double.
#[derive(Debug, Default)]
pub(crate) struct Double {
    backend: MemoryBackend,
    /// It never does; set if it is not to be asked for what differs.
    tries_jump_queues: bool,
}

impl Double {
    /// One on which nothing is locked, to be compared with that server.
    pub(crate) fn of(server: &dyn Server) -> Self {
        Self {
            tries_jump_queues: server.tries_jump_queues(),
            ..Self::default()
        }
    }
}

#[async_trait(?Send)]
impl Server for Double {
    fn backend(&self) -> Box<dyn LockBackend> {
        Box::new(self.backend.clone())
    }

    async fn look(&self) -> Vec<Seen> {
        let seen = |session: SessionId, key, mode, granted| Seen {
            session: session.number(),
            claim: Claim { key, mode },
            granted,
            blockers: Vec::new(),
            checked: true,
        };
        let held = self.backend.held();
        let mut all: Vec<_> = held
            .iter()
            .map(|holder| seen(holder.session, holder.key, holder.mode, true))
            .collect();
        let keys: BTreeSet<_> = held.iter().map(|holder| holder.key).collect();
        for key in keys {
            for waiter in self.backend.waiters(key) {
                let mut wait = seen(waiter.session, key, waiter.mode, false);
                // Those who hold come first, and those who wait in their order.
                let ahead = all.iter().filter(|other| other.blocks(&wait));
                wait.blockers = ahead.map(|other| other.session).collect();
                all.push(wait);
            }
        }
        all
    }

    async fn kill(&self, session: i64) {
        let sessions = self.backend.sessions();
        let session = sessions.iter().find(|found| found.number() == session);
        assert!(session.is_some_and(|session| self.backend.kill(*session)));
    }

    fn tries_jump_queues(&self) -> bool {
        self.tries_jump_queues
    }
}

/// A database of a PostgreSQL server.
#[derive(Debug)]
pub(crate) struct Postgres {
    database: Database,
    client: RawClient,
    backend: TokioPostgresBackend,
    tries_jump_queues: bool,
}

impl Postgres {
    /// The server's `deadlock_timeout`. It is waited for at every wait.
    const DEADLOCK_TIMEOUT: Duration = Duration::from_millis(10);

    /// When a wait has been looked at by the server, late as that may be on a busy machine.
    const CHECKED_AFTER: Duration = Duration::from_millis(40);

    /// What a program may need at most.
    const CONNECTIONS: usize = 24;

    /// A new database. Only a superuser may set what is set here.
    pub(crate) async fn start() -> Self {
        let database = Fixture::shared().database().await;
        let timeout = Self::DEADLOCK_TIMEOUT.as_millis();
        database.set(&format!("deadlock_timeout = {timeout}")).await;
        let url = database
            .url_without_pins()
            .parse()
            .expect("a URL of the fixture");
        let pool = Pool::builder(Manager::new(url, NoTls))
            .max_size(Self::CONNECTIONS)
            .build()
            .expect("no timeout needs a runtime");
        let client = database.client().await;
        let version = client.value("SHOW server_version_num").await;
        let version: u32 = version.parse().expect("a number");
        Self {
            client,
            tries_jump_queues: version >= 170_000,
            backend: TokioPostgresBackend::from_pool(pool),
            database,
        }
    }

    pub(crate) async fn remove(&self) {
        self.database.remove().await;
    }
}

#[async_trait(?Send)]
impl Server for Postgres {
    fn backend(&self) -> Box<dyn LockBackend> {
        Box::new(self.backend.clone())
    }

    async fn look(&self) -> Vec<Seen> {
        let rows = self.client.rows(
            "SELECT pid, classid::int8, objid::int8, objsubid, (mode = 'ShareLock')::int,
                    granted::int, EXTRACT(epoch FROM clock_timestamp() - waitstart)::float8,
                    CASE WHEN NOT granted THEN array_to_string(pg_blocking_pids(pid), ' ') END
               FROM pg_locks
              WHERE locktype = 'advisory' AND database =
                    (SELECT oid FROM pg_database WHERE datname = current_database())",
        );
        rows.await.iter().map(|row| seen(row)).collect()
    }

    async fn kill(&self, session: i64) {
        let ended = format!("SELECT pg_terminate_backend({session}, 10000)");
        assert_eq!(self.client.value(&ended).await, "t");
    }

    fn tries_jump_queues(&self) -> bool {
        self.tries_jump_queues
    }
}

fn seen(row: &[Option<String>]) -> Seen {
    let [numbers @ .., waited, blockers] = row else {
        panic!("a row has columns");
    };
    let numbers: Vec<i64> = numbers
        .iter()
        .map(|number| number.as_deref().expect("not null"))
        .map(|number| number.parse().expect("a number"))
        .collect();
    let [session, class, object, kind, shared, granted] = numbers[..] else {
        panic!("not a row of ours: {row:?}");
    };
    let half = |half: i64| u32::try_from(half).expect("an oid").cast_signed();
    let key = match kind {
        1 => LockKey::BigInt((class << 32) | object),
        _ => LockKey::Pair(half(class), half(object)),
    };
    let mode = match shared {
        1 => LockMode::Shared,
        _ => LockMode::Exclusive,
    };
    let blockers = blockers.iter().flat_map(|pids| pids.split_whitespace());
    let waited = waited.as_deref().map(|waited| waited.parse::<f64>());
    Seen {
        session,
        claim: Claim { key, mode },
        granted: granted == 1,
        blockers: blockers.map(|pid| pid.parse().expect("a number")).collect(),
        checked: waited.is_some_and(|waited| {
            waited.expect("a number") > Postgres::CHECKED_AFTER.as_secs_f64()
        }),
    }
}
