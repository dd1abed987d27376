//! What can go wrong, who is told, and what is left behind.
//!
//! One rule explains the rest: **a lock lives as long as its connection**. When the connection
//! ends, for whatever reason, PostgreSQL frees the lock, and nothing that happens in the process
//! can keep it. The server knows nothing of your section; the library watches the connection while the
//! section runs, and stops it when the connection is gone.
//!
//! # What can happen to a holder
//!
//! | what happens | the lock | what the library reports |
//! |---|---|---|
//! | the section returns, an `Err` of its own included | is unlocked | the section's value |
//! | the section panics | is freed: the connection is closed | the panic goes on to the caller |
//! | the section's future is dropped | is freed: the connection is closed | nothing; there is nobody to tell |
//! | the process is killed, or aborts | is freed as soon as the kernel closes the socket | nothing |
//! | the process freezes (stopped, swapped out, blocked) | stays held, and others wait, as long as its connection lives | nothing, until it wakes up |
//! | the connection breaks, or an administrator ends it | is free for others at once | [`Lost`](crate::Error::Lost): the section is stopped within 1 s, see below |
//! | the server restarts or crashes | is gone; the server starts with none | `Lost` |
//! | failover to a standby | is gone: locks are not replicated | `Lost`; a server that still is a standby is refused as [`NotPrimary`](crate::Error::NotPrimary) |
//! | the old primary lives on beside the new one | both grant it | nothing: no lock of a database can tell |
//! | the network goes silent, no packet and no reset | is freed within 30 s, or what [`PostgresOptions::dead_host_within`] says | `Lost`: the section is stopped within 10 s |
//! | a pooler in transaction mode is in between | is not taken: it could leak, and be held by two | [`SessionNotPinned`](crate::Error::SessionNotPinned), from the first lock on; in pinned mode locks work there |
//! | a pooler in between keeps a client's locks when it has gone | is not taken: the next client would own it, too | [`Unsupported`](crate::Error::Unsupported), from the first lock on; in pinned mode the check-up warns |
//!
//! What is missing here is in the list of [what it does not do](crate#what-it-does-not-do).
//!
//! The bound for the silent network is the server's: without it a vanished host would keep its locks
//! for as long as TCP's defaults have it, more than two hours. It works by settings of the
//! connection (`tcp_keepalives_*`, `tcp_user_timeout`), which are set when a lock is first held on
//! it, and are the one thing that stays on a connection of yours when it goes back to its pool.
//! Behind a proxy they concern the proxy's connection, not yours.
//!
//! `idle_session_timeout`, where the server has one, is switched off while a session lasts. The
//! library asks for it once, when it first meets the server; one that is set later ends a session
//! that holds a lock and is asked nothing for that long, and is reported as `Lost`.
//!
//! [`PostgresOptions::dead_host_within`]:
//!     https://docs.rs/advisory-core/latest/advisory_core/postgres/struct.PostgresOptions.html
//!
//! # A lost lock
//!
//! `Lost` means: for some of the time others could have had this lock. Whoever sees it:
//!
//! - A section that is running is stopped: its future is dropped, and `with` and its kin return `Lost`
//!   with [`Section::Stopped`](crate::Section::Stopped). If it comes to its end before the loss is
//!   seen, they return `Lost` with `Completed` instead of its value. What it has done stays done.
//! - Every call that is nested in the section and needs the connection fails from then on. The
//!   library never reconnects under a lock, and never takes one anew that was lost.
//! - [`LockGuard::release`](crate::LockGuard::release) returns `Lost`; so does that of a
//!   [`Session`](crate::Session). All locks of a session are lost together.
//! - [`LockGuard::lost`](crate::LockGuard::lost) and [`Session::lost`](crate::Session::lost) are
//!   futures that end when it happens, for those who hold a lock outside of a section.
//! - [`LockGuard::is_lost`](crate::LockGuard::is_lost) and
//!   [`Session::is_lost`](crate::Session::is_lost) tell without asking the server. `true` is
//!   certain; `false` means that nobody has noticed. tokio-postgres notices a closed connection
//!   within milliseconds, sqlx with the next statement or probe: for a guard that nobody watches that
//!   is the release.
//!
//! ```
//! use advisory::{Error, LockManager, MemoryBackend, Section};
//!
//! # futures::executor::block_on(async {
//! let server = MemoryBackend::new();
//! let locks = LockManager::new(server.clone());
//! let import = locks.named("imports:run");
//!
//! let result = import.with(async || {
//!     // The connection breaks in the middle of the work.
//!     server.kill(server.holders(import.key())[0].session);
//!     futures::future::pending::<()>().await;
//! }).await;
//! assert!(matches!(result, Err(Error::Lost { section: Section::Stopped, .. })));
//!
//! // The next one gets a new connection.
//! assert_eq!(import.with(async || 17).await?, 17);
//! # Ok::<(), advisory::Error>(())
//! # }).unwrap();
//! ```
//!
//! # How a loss is seen
//!
//! Sections, and scopes, are watched while they run. A connection that was closed is seen within a
//! second, a network that has gone silent within ten
//! ([`Options`](super::choosing#options-and-defaults)).
//!
//! - The watching is done in the section's own task, whenever that is polled. A section that blocks
//!   its thread is stopped where it next awaits something. What it has spawned runs on; give that
//!   [`Session::lost`](crate::Session::lost) to look at, or a
//!   [`scope`](crate::Session::scope), which is watched as well.
//! - While a nested call uses the connection, its answer is the sign of life. In a silent network a
//!   nested wait may take its whole turn (at most 30 s) and then `answer_within` to end. The turns of an
//!   owner that somebody waits for are as long as the server needs to find a deadlock.
//! - In a section shorter than half a second nothing is sent for it. In a longer one sqlx, whose
//!   driver does not listen while it is idle, is probed every half second by an empty statement;
//!   tokio-postgres only when nothing was heard for four seconds. A probe that fails, or is not
//!   answered, is a loss.
//! - A section that had better go on is told so:
//!   [`on_loss(OnLoss::Continue)`](crate::Lock::on_loss). It is not watched, and hears of the loss at
//!   its end.
//! - A guard is watched by whoever awaits its [`lost`](crate::LockGuard::lost), and by nobody else.
//!
//! # Fencing tokens
//!
//! A process that is frozen cannot be stopped, and what it has sent to others may arrive late. Only
//! whoever receives it can tell, and for that a holder sends a number along:
//! [`LockGuard::fencing_token`](crate::LockGuard::fencing_token) is larger than those of all earlier
//! holders. The resource keeps the largest token that it has seen, and refuses smaller ones:
//!
//! ```sql
//! CREATE TABLE report (id bigint PRIMARY KEY, body text, fence bigint NOT NULL DEFAULT 0);
//!
//! -- Before anything is read: shuts out all earlier holders.
//! UPDATE report SET fence = $1 WHERE id = $2 AND fence <= $1;
//!
//! -- Each write. No row: somebody else has the lock by now.
//! UPDATE report SET body = $3, fence = $1 WHERE id = $2 AND fence <= $1;
//! ```
//!
//! The example [`fencing`] does so on a server. The same with a table in memory, and a holder that
//! wakes up too late:
//!
//! ```
//! use advisory::{FencingToken, LockManager, MemoryBackend};
//!
//! /// A row of the table.
//! #[derive(Default)]
//! struct Report {
//!     body: &'static str,
//!     fence: Option<FencingToken>,
//! }
//!
//! impl Report {
//!     /// `UPDATE … WHERE fence <= $token`; whether a row was updated.
//!     fn update(&mut self, body: &'static str, token: FencingToken) -> bool {
//!         let fits = self.fence <= Some(token);
//!         if fits {
//!             (self.body, self.fence) = (body, Some(token));
//!         }
//!         fits
//!     }
//! }
//!
//! # futures::executor::block_on(async {
//! let server = MemoryBackend::new();
//! let (frozen, other) = (LockManager::new(server.clone()), LockManager::new(server.clone()));
//! let mut report = Report::default();
//!
//! let guard = frozen.named("report:7").lock().await?;
//! let old = guard.fencing_token().await?;
//! // It freezes, and its connection breaks. Another replica takes over.
//! server.kill(server.holders(guard.key())[0].session);
//! other.named("report:7").with_guard(async |guard| {
//!     let new = guard.fencing_token().await?;
//!     assert!(report.update("new", new));
//!     Ok::<(), advisory::Error>(())
//! }).await??;
//!
//! // It wakes up, and knows of nothing.
//! assert!(!report.update("old", old));
//! assert_eq!(report.body, "new");
//! # Ok::<(), advisory::Error>(())
//! # }).unwrap();
//! ```
//!
//! [`fencing`]: https://docs.rs/crate/advisory/latest/source/examples/fencing.rs
//!
//! On PostgreSQL a token is a place in the server's write-ahead log. What that means:
//!
//! - It costs a round trip and a flush of that log; with synchronous standbys, their confirmation as
//!   well. Whoever asks for none pays nothing.
//! - While a synchronous standby is away, the server process that takes a token waits for it, and the
//!   loss of its connection does not interrupt that: the lock may stay held on the server until the
//!   standby is back (seen on PostgreSQL 15). In [pinned mode](super::servers#pinned-mode) another
//!   process waits, and the token fails after three seconds. Whoever cannot have that should not ask
//!   for tokens.
//! - Tokens grow across crashes, restarts and promotions. They do not if a standby is promoted that
//!   lagged behind, or if the server is restored from a backup: what it has not received it does not
//!   know.
//! - They belong to one server. If its data move to another one (dump, logical replication), set the
//!   `fence` columns back to 0.
//! - Consumers of logical decoding may see the empty message that takes the place, with the prefix
//!   `advisory`.
//!
//! # What you must do
//!
//! Assume that once in a while two sections overlap, and that a section ends half-way. So make it
//! **idempotent**: doing it again, or twice at once, must be harmless.
//!
//! - Do the work in transactions that check what they find: `UPDATE … WHERE state = 'open'`, a
//!   unique constraint, a version column. The lock then saves work and conflicts; the constraint
//!   keeps the data right.
//! - Give calls to others a key by which they recognise a repetition, if they take one.
//! - Write down when a job was last done, and look there first: `try_with` skips only those who
//!   come while it runs.
//! - Keep sections short, and do not block the thread in them.
//! - Where two at once would do harm all the same, write with a [fencing token](#fencing-tokens).
//!
//! # Cancellation and drops
//!
//! A future of this library may be dropped at any time. What that leaves:
//!
//! | dropped while | what happens | what stays on the server |
//! |---|---|---|
//! | it waits for a connection | nothing was asked for | nothing |
//! | its first statement is under way | the connection is closed | a grant ends with the connection |
//! | it waits for the lock | the connection is closed | a waiter, no longer than one slice |
//! | the section runs | the section is dropped, then the connection closed | nothing |
//! | the lock is released | the release goes on, or the connection is closed | nothing |
//! | it does any of these on a session that others use | the statement is finished by whoever comes next, or by a thread that is started for that; what it was granted is given back | as above; the others keep their locks |
//!
//! The server looks at a socket only between statements, so a wait that was abandoned stays in its
//! queue to the end of its slice. That is at most 0.4 × `deadlock_timeout` (0.4 s by default);
//! 1.5 × `deadlock_timeout` (at most 30 s) for an owner that holds other locks and has waited for
//! longer than `deadlock_timeout`; and up to 30 s for a writer that has waited behind readers for
//! long.
//!
//! A guard may be dropped anywhere, outside any runtime as well. If its lock was alone on its
//! connection, the connection is closed, and the lock is free a millisecond or so later. If others
//! live there, an unlock is sent, or left to whoever uses the connection at the moment; what then is
//! still to be done is done by a thread of this library, named `advisory`, which is started when it is
//! first needed. But prefer
//! [`release`](crate::LockGuard::release): it keeps the connection for the next one, and tells what
//! a drop cannot.
//!
//! A guard that is leaked (`mem::forget`) keeps its lock until the process ends, and
//! [`close`](crate::LockManager::close) waits for it.
//!
//! # A server that does not answer
//!
//! A timeout (`with_timeout`, `lock_timeout`) bounds all that comes before the section: the
//! checkout, the wait, and a silent server, for which a second of grace is added. The error says
//! which it was: its [`stage`](crate::Stage) is `Connection`, `Lock` or `Server`.
//!
//! Everything else that is sent, a release or a nested try, has 10 seconds
//! ([`Options::answer_within`](crate::Options::answer_within)). A connection that leaves a statement
//! unanswered for that long is closed, and what was held on it is lost. Nothing bounds the section.
//!
//! ```
//! use std::time::Duration;
//!
//! use advisory::{Error, LockManager, MemoryBackend, Options};
//!
//! # futures::executor::block_on(async {
//! let server = MemoryBackend::new();
//! let options = Options::new().answer_within(Duration::from_millis(100));
//! let locks = LockManager::with_options(server.clone(), options);
//! let guard = locks.named("imports:run").lock().await?;
//!
//! server.stall();
//! assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
//! server.resume();
//! assert!(server.held().is_empty());
//! # Ok::<(), advisory::Error>(())
//! # }).unwrap();
//! ```
//!
//! # Logging an error
//!
//! The text of an error never repeats its cause, so a log wants both. `Lost` and `Backend`, for two,
//! keep the driver's report there.
//!
//! ```
//! use std::error::Error;
//!
//! /// The error and its causes, in one line.
//! fn with_causes(error: &dyn Error) -> String {
//!     let mut line = error.to_string();
//!     let mut next = error.source();
//!     while let Some(cause) = next {
//!         line += &format!(": {cause}");
//!         next = cause.source();
//!     }
//!     line
//! }
//!
//! let error = advisory::Error::backend("connection refused");
//! assert_eq!(with_causes(&error), "the lock backend failed: connection refused");
//! ```
//!
//! A [`Timeout`](crate::Error::Timeout) names the lock and its holders: sessions, applications,
//! addresses. That is for your log, not for your users.
//!
//! # Which errors to try again
//!
//! | error | again? |
//! |---|---|
//! | `Timeout`, `PoolExhausted` | yes, later; look at who holds the lock, or at the size of the pool |
//! | `Deadlock` | yes, from the outermost section on, so that its locks are given back |
//! | `Lost` | yes, if the section is idempotent |
//! | `Backend`, `LockTableFull` | yes, after a pause; something has to be mended meanwhile |
//! | `NotPrimary`, `SessionNotPinned`, `Unsupported` | no: the connection goes to the wrong place; during a failover, once that is over |
//! | `Closed`, `CloseInsideLock`, `ForeignLock` | no: the program is wrong, or ending |
