//! Servers, poolers and proxies: what locks can be taken through, and how the others are found out.
//!
//! # The short answer
//!
//! | between the program and the server | what to do |
//! |---|---|
//! | nothing | nothing |
//! | a pooler in session mode that cleans a session when its client goes, as PgBouncer does by default | nothing |
//! | a pooler in transaction mode | [pinned mode](#pinned-mode), or a port that leads past it |
//! | a pooler in statement mode | a port that leads past it |
//! | not known | ask: [`locks.check()`](#the-check-up) |
//!
//! A lock belongs to a server session, a process of the server's. So there has to be a server session
//! that is the client's for as long as it holds something. Where there is none, locks are refused with
//! [`SessionNotPinned`](crate::Error::SessionNotPinned) instead of taken in vain.
//!
//! # Poolers
//!
//! In **session mode** a pooler gives a client a server session until it disconnects. Then it has to
//! free what the client held, by ending the session or by `DISCARD ALL`, or the next client owns it.
//! Everything works as on the server, but for three things. Each connection of the program's pool
//! takes one of the pooler's to the server, whether a lock is held on it or not. The bound for a [dead
//! host](super::choosing#options-and-defaults) is about the pooler's host, since that is whom the
//! server talks to; that a client's host is gone is the pooler's to notice (`tcp_keepalive` and
//! `tcp_user_timeout` in PgBouncer). And a holder's address, in a
//! [`Timeout`](crate::Error::Timeout), is that of the pooler.
//!
//! In **transaction mode** the session is the client's for a transaction only. A lock that is taken
//! outside of one stays on a session that the next client gets, and the next client is granted the
//! same lock, for a session may enter its own locks again: two owners, and nobody notices. **Pinned
//! mode** keeps a transaction open while something is held, and with it the session.
//!
//! In **statement mode** there are no transactions, and no way to hold a lock.
//!
//! ## How they are found out
//!
//! The first lock of a backend opens a second connection beside the pool. This one takes a server
//! session for a transaction, twice, and each time the first one is asked which process serves it. A
//! pooler has to give it another, or the same to both, or let it wait; any of that is
//! [`SessionNotPinned`](crate::Error::SessionNotPinned). The second connection also leaves a setting,
//! and looks whether it is still there: if not, something resets sessions between statements. At last
//! it tries a lock, of a random key, that the first one has taken: if it gets that, the two lead to
//! different servers, or to none of PostgreSQL's, and that is
//! [`Unsupported`](crate::Error::Unsupported). Then it takes a lock of its own and is closed with it, and
//! the first one looks in `pg_locks` until that is free, for five seconds at most: if it is not, a lock
//! outlives its client, and that is `Unsupported`, too. That is all: once for each backend, and once
//! more after a release has found its lock gone, or an answer came from another process than before. The
//! error about sessions says
//!
//! ```text
//! the connection does not keep one server session (a pooler in transaction or statement mode?);
//! use session pooling, a direct connection, or pinned mode behind transaction pooling
//! ```
//!
//! - **It can be escaped.** Where a load balancer spreads connections over several poolers, the two
//!   connections may reach different ones that each have a session to spare, and see nothing. What is
//!   left then is that every answer about a lock carries the number of its process; a session that
//!   moves while a lock is held is seen at the next statement. Do not rely on it: know your pooler's
//!   mode.
//! - **A pooler with one server session** cannot be looked into. The second connection waits for it in
//!   vain, and the error is [`PoolExhausted`](crate::Error::PoolExhausted), after half of
//!   [`session_within`].
//! - **The look can be spared**, by [`trust_session_pooling`], by those who know. If they are wrong,
//!   locks exclude nobody.
//! - **It takes room**: one place among the server's connections, or the pooler's, for a moment. If
//!   there is none, the first lock fails, and the next one tries again.
//!
//! ## Pinned mode
//!
//! ```
//! use advisory::PostgresOptions;
//!
//! let options = PostgresOptions::new().pinned();
//! # drop(options);
//! ```
//!
//! ```text
//! let backend = TokioPostgresBackend::connect(url).await?.with_options(options);
//! ```
//!
//! Nothing else changes in the program. Locks are still released one by one, waits still end by
//! timeout or as a deadlock without taking other locks with them. It begins with the first statement
//! and ends when nothing is held any more, so a session that holds nothing keeps no transaction open,
//! not between two turns of a wait either. On a direct connection it works as well, and only costs.
//!
//! The first lock looks for nothing here. Pinned mode is right behind a pooler that knows transactions,
//! and that ends or cleans the server session when a client goes in the middle of one, as PgBouncer
//! does. One that only rolls back and lends the session again leaves the locks on it to the next client.
//! The [check-up](#the-check-up) tries that, and warns.
//!
//! What it costs, and where it ends:
//!
//! - A section takes **one round trip more**: the transaction's end. Nothing is prepared by name, which
//!   spares the pooler that trouble and costs the server some parsing.
//! - **A server connection of the pooler is taken for as long as a lock is held**, and so is one for
//!   each wait while its turn lasts. Size `default_pool_size` for them, and for the queries beside
//!   them, by [the formula](super::choosing#the-formula). If all are taken by holders that want to
//!   query through the same pooler, they wait for each other until a limit ends.
//! - **Index builds.** `CREATE INDEX CONCURRENTLY` waits for whole transactions that were there before
//!   it and have used a snapshot. One that holds a lock and does nothing has none, and lets builds
//!   through. Whoever holds one lock and **waits for another** has one while the statement runs, and a
//!   build that starts meanwhile waits until this owner has let go of everything. A wait that holds
//!   nothing is no such case.
//! - **A lock's transaction is idle most of the time.** The server's own timeouts for that are off
//!   inside it. A pooler may have some of its own: PgBouncer's `idle_transaction_timeout`, if it is
//!   on, ends locks that are held for longer, as [`Lost`](crate::Error::Lost).
//! - **Fencing tokens** before PostgreSQL 17 need one more connection, beside the pool, for a moment:
//!   only the end of another transaction has the server write its log to disk. That costs a few
//!   milliseconds. From 17 on the lock's own connection does it, unless synchronous standbys have to
//!   confirm it: then the other transaction is waited for there, too. If it has not ended after three
//!   seconds, there is no token.
//! - The lock is on a session that somebody else has next. Nothing is left on it: the settings that
//!   are changed end with the transaction.
//!
//! ## PgBouncer
//!
//! sqlx sends `extra_float_digits` when it connects, and PgBouncer refuses what it does not know.
//! Either tell it so, or tell sqlx:
//!
//! ```ini
//! ignore_startup_parameters = extra_float_digits
//! ```
//!
//! ```
//! use sqlx::postgres::PgConnectOptions;
//!
//! let options = PgConnectOptions::new().host("pgbouncer").extra_float_digits(None);
//! # drop(options);
//! ```
//!
//! In either mode `client_idle_timeout`, which is off by default, ends connections that say nothing for
//! longer, and with them what is held on them. A guard that nobody watches says nothing; in a section
//! sqlx speaks twice a second, tokio-postgres every few seconds.
//!
//! # Versions
//!
//! PostgreSQL 14 to 18, the same on all of them but for this:
//!
//! | from | |
//! |---|---|
//! | before 14 | refused as [`Unsupported`](crate::Error::Unsupported) |
//! | 17 | a `transaction_timeout` of the role is switched off in waits and in pinned mode; fencing tokens in pinned mode need no second connection, unless there are synchronous standbys |
//!
//! # Roles and privileges
//!
//! A role that may connect needs nothing else: no table, no extension, no grant. All roles share the
//! locks of a database.
//!
//! - **Without `plpgsql`** (the extension was dropped, or `USAGE` on the language revoked) waits go by
//!   plain statements. Each turn that ends in vain, one every few hundred milliseconds, is then an
//!   error in the server's log, and takes a round trip or two more. The check-up warns of it.
//! - **Who holds a lock** is read in `pg_locks`, which everybody may; application, state and address of
//!   other roles' sessions show to members of `pg_read_all_stats` only. To others the holder is a
//!   process number.
//! - A role's or a database's own `lock_timeout`, `statement_timeout`, `idle_session_timeout` and the
//!   like end no wait and no lock. They come back as they were.
//!
//! # Standbys and failover
//!
//! Locks are not replicated. A standby has its own, which exclude nobody on the primary, so it is
//! refused as [`NotPrimary`](crate::Error::NotPrimary), by the first lock and by every later answer
//! that takes one. A refusal is not remembered: the next lock asks again, and a standby that has been
//! promoted meanwhile will do.
//!
//! After a failover every lock of the old primary is gone, and its holders get
//! [`Lost`](crate::Error::Lost). If the old primary lives on where some clients reach it, both grant
//! the same lock; no lock in a database can prevent that, a [fencing
//! token](super::failure#fencing-tokens) at the resource can, unless the promoted standby lagged
//! behind.
//!
//! tokio-postgres takes several hosts and finds the primary among them:
//!
//! ```text
//! postgres://app@db1,db2/app?target_session_attrs=read-write
//! ```
//!
//! sqlx takes one host. Give it a name or an address that follows the primary. With either the library
//! looks for itself, since a name may lag behind.
//!
//! # The check-up
//!
//! [`LockManager::check`](crate::LockManager::check) asks the server, and looks for a pooler, on
//! two connections beside the pool, and in pinned mode on two more. It takes no locks but those of random
//! keys that it tries, and says in a [`Report`](crate::Report) what it found: for programs as fields,
//! for people as a page. Put it where a service starts, or behind its health endpoint:
//!
//! ```
//! use advisory::LockManager;
//!
//! async fn is_ready(locks: &LockManager) -> advisory::Result<bool> {
//!     let report = locks.check().await?;
//!     if !report.is_fit() {
//!         eprintln!("{report}");
//!     }
//!     Ok(report.is_fit())
//! }
//! # let locks = LockManager::new(advisory::MemoryBackend::new());
//! # assert!(futures::executor::block_on(is_ready(&locks)).unwrap());
//! ```
//!
//! The example [`doctor`] does so from a shell. Through a PgBouncer in transaction mode it says, with
//! the version shortened here,
//!
//! ```text
//! $ DATABASE_URL=postgres://app@pgbouncer:6432/app cargo run --example doctor
//! server       PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu
//! role         primary
//! sessions     a pooler lends server sessions for a transaction at a time
//! connections  1 of 100 in use
//! locks        0 advisory locks held, room for about 6400 locks
//! deadlocks    looked for after 1s
//! refused: the connection does not keep one server session (a pooler in transaction or statement mode?); use session pooling, a direct connection, or pinned mode behind transaction pooling
//! Locks are refused here.
//! ```
//!
//! and ends with an error. With `-- --pinned` the last two lines are
//!
//! ```text
//! note: pinned mode is on: each session's locks are kept by a transaction
//! Locks can be taken here.
//! ```
//!
//! # Other servers and proxies
//!
//! *Run* means that the suite passes there. *Simulated* means that a test plays what is documented, on
//! connections to PostgreSQL: by the `version()` that such a server answers, or by lending sessions as
//! such a proxy does. Nobody has tried the real one. *Read* means neither: it is what the vendor or the
//! project documents. *Assumed* is what follows from how it is built.
//!
//! | server | what is known | here | how we know |
//! |---|---|---|---|
//! | PostgreSQL 14 to 18 | | works | run |
//! | managed PostgreSQL (RDS, Aurora PostgreSQL, Azure Database, Cloud SQL, AlloyDB, Neon, Supabase), on direct ports | PostgreSQL itself; only the writer will do | accepted | assumed |
//! | EDB Postgres Advanced Server, Percona's and others' builds | PostgreSQL itself | accepted | assumed; the names are tested |
//! | Citus | the coordinator is PostgreSQL. Its locks are its own, so let all connect there | accepted | assumed |
//! | CockroachDB | the functions for sessions exist and do nothing | refused | simulated |
//! | YugabyteDB | until 2024.2 the functions are missing, by an error that a setting silences: then they do nothing. 2.25 has them as a preview, 2025.1 by default. The silencing setting, waits that outlasted `lock_timeout` by up to half a minute in the preview, and tokens from a log that is not PostgreSQL's: too much to rely on untried | all releases refused | simulated |
//! | Amazon Redshift | documented as not supported, possibly without an error | refused | simulated |
//! | Greenplum, Greengage, Apache Cloudberry | nothing found on what the functions mean in a cluster | refused, to be safe | simulated |
//! | openGauss, GaussDB | the functions are documented, and forked long ago; the rest of what is needed is not known | refused, to be safe | read |
//! | Aurora DSQL | no `plpgsql`, no savepoints; of advisory locks nothing is said | refused, if it lacks what is asked for | read |
//! | Materialize, RisingWave, QuestDB, CedarDB, CrateDB | not built on PostgreSQL's locks | refused | assumed; most of the names are tested |
//!
//! A server is refused by its name in `version()`, before anything else is asked. One that calls itself
//! plain PostgreSQL, 14 or newer, and lacks a function, a table or a setting that all of those have is
//! refused as soon as that shows. So is, by the look at the server, one where a second connection gets
//! what the first one has locked (simulated); pinned mode does not look.
//!
//! | pooler or proxy | what is known | here | how we know |
//! |---|---|---|---|
//! | PgBouncer, session mode | keeps the session, and cleans it by `server_reset_query` when the client goes | works with the default, `DISCARD ALL`, or another one that unlocks; refused if it is empty | run; a test runs the empty one |
//! | PgBouncer, transaction mode | lends it | refused; works in pinned mode | run, and simulated |
//! | PgBouncer, statement mode | no transactions | refused, in pinned mode too | a test runs it |
//! | PgBouncer of Azure Database (port 6432) and of Neon (`-pooler` hosts) | Neon's is in transaction mode, Azure's as it is configured | as PgBouncer in that mode | read |
//! | Supavisor | 5432 is session mode, 6543 transaction mode; newer releases can log or reject session locks in transaction mode | as PgBouncer in that mode | read |
//! | Odyssey | session and transaction mode; unlocks when a client goes only with `pool_discard` or `pool_smart_discard` | as PgBouncer in that mode; without either, as pgcat | read |
//! | pgcat | session and transaction mode; when a client goes it rolls back and lends the session again, locks and all | refused in session mode; unsafe in pinned mode, of which the check-up warns | read in its source |
//! | PgDog | session and transaction mode; by an open report, session locks stay on its sessions to the server after a client was cut off | as PgBouncer in that mode, unless that shows in the look | read |
//! | Cloud SQL's managed pooling | several poolers behind one address | may escape: take the direct port, or pinned mode | read |
//! | RDS Proxy | lends a session until the client changes its state, by a setting or a session lock, then leaves it the session ("pinning") | refused: when it is looked into, nothing is pinned yet. Pinned mode works, and so does [`trust_session_pooling`], since the first lock pins. The direct endpoint is best: a lock takes one of the proxy's connections anyway | simulated |
//! | Pgpool-II | keeps the session; with load balancing on, a `SELECT` outside of a transaction may go to a standby | not known: switch load balancing off for these connections, or take the primary's own port | read |
//! | Postgres Pro Enterprise's built-in pooler | answers session locks with an error | that error | read |
//! | what resets sessions outside of transactions | locks go with the reset | refused; works in pinned mode | simulated |
//! | several primaries behind a balancer, or in a URL with several hosts | each has locks of its own | refused, if the two connections of the look reach different ones; in pinned mode nobody looks | simulated |
//! | several poolers behind a load balancer | two clients may reach two of them | may escape, see [above](#how-they-are-found-out) | not tried |
//!
//! [`session_within`]: https://docs.rs/advisory-core/latest/advisory_core/postgres/struct.PostgresOptions.html#method.session_within
//! [`trust_session_pooling`]: https://docs.rs/advisory-core/latest/advisory_core/postgres/struct.PostgresOptions.html#method.trust_session_pooling
//! [`doctor`]: https://docs.rs/crate/advisory/latest/source/examples/doctor.rs
