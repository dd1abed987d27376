//! Choosing a backend, sizing the pool, and setting the options.
//!
//! # Which backend
//!
//! Take the one whose driver your program has. A program with neither takes `tokio-postgres`, which
//! spends fewer round trips and hears sooner of a broken connection. A unit test takes
//! `MemoryBackend`. A library takes none: it depends on `advisory-core`, accepts a
//! [`LockManager`](crate::LockManager), and leaves the choice to its users.
//!
//! | | `tokio-postgres` | `sqlx` |
//! |---|---|---|
//! | runs on | tokio | tokio, smol, async-std |
//! | a checkout costs | nothing, if the pool recycles by `RecyclingMethod::Fast`; a round trip with `Verified` or `Clean` | a round trip, unless the pool has `test_before_acquire(false)` |
//! | a return costs | nothing | a round trip; on tokio in a task that nobody waits for |
//! | a connection that closes while a section runs | is noticed at once, and looked at every 0.5 s | is noticed by a probe, every 0.5 s |
//! | a checkout while the server refuses connections | fails at once, as `Backend` | tries until the pool's limit ends, then `PoolExhausted` |
//! | a checkout from a full pool of your own | waits without limit, unless the pool has a `wait_timeout` | waits 30 s, unless the pool has another `acquire_timeout` |
//!
//! The last line comes after a limit of the backend's own: locks get three quarters of your pool, and
//! whoever finds those in use waits for one of them first, up to 30 s ([`session_within`]). Then
//! queries may still have taken the rest.
//!
//! A lock lives in the database that the connections go to, and on the primary alone. All replicas
//! have to use the same one, and a connection has to reach the server itself, or a pooler in
//! session mode; behind one in transaction mode it takes [pinned mode](super::servers#pinned-mode).
//!
//! # What a lock costs
//!
//! Beside what the pool adds:
//!
//! | | round trips |
//! |---|---|
//! | a free lock | two: one takes it, one gives it back |
//! | a lock that is taken inside a section, or on a session | the same two, and no checkout |
//! | a lock that the section holds already | none |
//! | a lock that a task of the same manager releases to the next one in its queue | none, for a millisecond after the server has granted it; then two |
//! | many locks at once ([`try_lock_each`](crate::Session::try_lock_each), [`lock_all`](crate::Session::lock_all)) | one for all of the same kind, and one to give them back |
//! | a try that misses | one; none while another task of the same manager holds the lock |
//! | a wait | one to find out that it has to wait, then one per slice (0.3 to 0.4 s with default settings of the server) |
//! | a timeout | one more, to ask who holds the lock |
//! | a section that takes longer than 0.5 s | an empty statement every 0.5 s with `sqlx`, whose driver does not listen while it is asked nothing; with `tokio-postgres` one every 4 s |
//! | a [fencing token](super::failure#fencing-tokens) | one for each time that the lock is held, and a flush of the server's log |
//!
//! A connection prepares each statement when it first needs it, and the first connection of a
//! backend asks the server for its version and some settings.
//!
//! # Who occupies a connection
//!
//! - A lock that is held: one for a section with all that is nested in it, one for each guard that
//!   was taken outside of a section.
//! - A wait for a lock: one for all tasks of a manager that want the same lock exclusively, be it held
//!   here or elsewhere; one each for readers, and for what is taken on a session or in a section, which
//!   have theirs already.
//! - A [`Session`](crate::Session): one, however many locks it holds.
//! - A look at the [holders](crate::Lock::holders), outside of a section: one, while it lasts.
//!
//! With [`Sessions::Shared`](crate::Sessions::Shared) it is one for all locks of the manager together,
//! and one more for each key that another process holds when it is waited for.
//!
//! The connection of a lock is not yours to query on. What a section does in the database it does
//! on another connection.
//!
//! # The formula
//!
//! Per process, let L be the most locks that are held or waited for at the same time, each section
//! or session counted once, and Q the most connections that the program's own queries need at the
//! same time. Then
//!
//! ```text
//! your pool, for both:      connections  ≥  L + Q, and  ≥  4/3 L
//! a pool of its own:        connections  ≥  L
//! on the server:            replicas × connections  ≤  max_connections − what is reserved
//! ```
//!
//! The first line is a matter of life and death, not of speed: in a shared pool of N connections, N
//! tasks that each hold a lock and then want a query would wait for each other until the pool's
//! limit ends. So of a pool that was handed in, a quarter of the connections, at least one, is never
//! used for locks ([`max_sessions`] sets another number): one task at a time gets its query, and all
//! go on, if slowly. That is where 4/3 L comes from. A pool of one has none to spare. Whoever finds the
//! locks' share in use waits for a session up to 30 seconds ([`session_within`]), and then gets
//! [`PoolExhausted`](crate::Error::PoolExhausted). To be fast, give locks and queries a pool each.
//!
//! A pool for locks alone may even be smaller than L: who finds it empty waits for a connection
//! instead of for the lock. That ends well if nobody who holds a lock needs another connection of
//! that pool. Nested sections do not; a guard that is taken beside another guard does, and so does
//! a spawned task that takes a lock while its section waits for it. And then ten waiters for one
//! busy lock can keep everybody else from a lock that is free.
//!
//! # A pool of its own, or yours
//!
//! | | its own: `connect`, `connect_with`, `connect_pool` | yours: `from_pool` |
//! |---|---|---|
//! | size | ten connections, or what `connect_pool` is given | the pool's |
//! | a checkout waits | at most 30 s, or what `connect_pool` is given | at most 30 s for its turn ([`session_within`]), then as the pool has it |
//! | at most in use for locks | all | three quarters of it |
//! | `application_name` | `advisory`, unless you set one | the pool's |
//! | `LockManager::close` | closes it | leaves it open |
//!
//! Set an `application_name` that tells replicas apart: it is what a
//! [`Timeout`](crate::Error::Timeout) of somebody else says about you.
//!
//! # When the pool is too small
//!
//! Two errors tell of it, and which one comes depends on whose patience ends first:
//!
//! - [`PoolExhausted`](crate::Error::PoolExhausted): the pool's own limit ended, or
//!   [`session_within`]. A try can get it, too: it does not wait for the lock, but it may wait for a connection. It is never reported as
//!   a miss.
//! - [`Timeout`](crate::Error::Timeout) at the stage [`Connection`](crate::Stage::Connection): the
//!   caller's own timeout ended. A timeout below one second gives the checkout that second all the
//!   same, so that an idle connection can be found or a new one opened.
//!
//! ```
//! use std::time::Duration;
//!
//! use advisory::{Error, LockManager, MemoryBackend, Stage};
//!
//! # futures::executor::block_on(async {
//! let pool = MemoryBackend::new()
//!     .with_max_sessions(1)
//!     .with_checkout_timeout(Duration::from_secs(5));
//! let locks = LockManager::new(pool);
//! let guard = locks.named("imports:run").lock().await?;
//!
//! // Another lock needs another connection, and there is none.
//! let other = locks.named("digest").lock_timeout(Duration::from_millis(10)).await;
//! assert!(matches!(other, Err(Error::Timeout { stage: Stage::Connection, .. })));
//!
//! // That this lock is taken needs no connection to find out.
//! assert!(locks.named("imports:run").try_lock().await?.is_none());
//!
//! // What is nested in a section needs none of its own.
//! guard.release().await?;
//! locks.named("imports:run").with(async || {
//!     locks.named("digest").with(async || { /* … */ }).await
//! }).await??;
//! # Ok::<(), advisory::Error>(())
//! # }).unwrap();
//! ```
//!
//! # Many locks at a time
//!
//! Each lock that is held takes a place in the server's shared lock table, which has room for about
//! `max_locks_per_transaction × (max_connections + max_prepared_transactions)` locks of any kind,
//! of all databases. When it is full the error is [`LockTableFull`](crate::Error::LockTableFull),
//! and other users of the server get it as well. Take the locks that you need now, and release
//! them.
//!
//! # Options and defaults
//!
//! | option | default | what it bounds |
//! |---|---|---|
//! | [`Options::answer_within`](crate::Options::answer_within) | 10 s | a statement without an answer; then the connection is closed |
//! | [`Options::loss_seen_within`](crate::Options::loss_seen_within) | 1 s | how long a section runs on after its connection was closed |
//! | [`Options::silence_seen_within`](crate::Options::silence_seen_within) | 10 s | how long it runs on after the network has gone silent |
//! | [`Options::hand_over_within`](crate::Options::hand_over_within) | 1 ms | how long a lock goes from task to task before other processes get their turn |
//! | [`PostgresOptions::dead_host_within`](https://docs.rs/advisory-core/latest/advisory_core/postgres/struct.PostgresOptions.html#method.dead_host_within) | 30 s | how long a holder keeps its locks whose host has vanished |
//! | [`PostgresOptions::max_sessions`][`max_sessions`] | all of a pool of its own, three quarters of yours | connections that locks use at a time |
//! | [`PostgresOptions::session_within`][`session_within`] | 30 s | the wait for one of them |
//!
//! Keep `silence_seen_within` below `dead_host_within`: then a section that is cut off has, as a rule,
//! been stopped before others get its lock. The first four belong to the manager, the others to the
//! backend:
//!
//! ```
//! use std::time::Duration;
//!
//! use advisory::{LockManager, MemoryBackend, Options};
//!
//! let options = Options::new()
//!     .answer_within(Duration::from_secs(5))
//!     .loss_seen_within(Duration::from_millis(200));
//! let locks = LockManager::with_options(MemoryBackend::new(), options);
//! # drop(locks);
//! ```
//!
//! ```text
//! let options = PostgresOptions::new().dead_host_within(Duration::from_secs(15)).max_sessions(4);
//! let backend = TokioPostgresBackend::from_pool(pool).with_options(options);
//! ```
//!
//! [`max_sessions`]: https://docs.rs/advisory-core/latest/advisory_core/postgres/struct.PostgresOptions.html#method.max_sessions
//! [`session_within`]: https://docs.rs/advisory-core/latest/advisory_core/postgres/struct.PostgresOptions.html#method.session_within
