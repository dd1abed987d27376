//! What can go wrong, who is told, and what is left behind.
//!
//! One rule explains the rest: **a lock lives as long as its connection**. When the connection
//! ends, for whatever reason, PostgreSQL frees the lock, and nothing that happens in the process
//! can keep it. The server knows nothing of your section, and the section learns of the server only
//! when it asks.
//!
//! # What can happen to a holder
//!
//! | what happens | the lock | what the library reports |
//! |---|---|---|
//! | the section returns, an `Err` of its own included | is unlocked | the section's value |
//! | the section panics | is freed: the connection is closed | the panic goes on to the caller |
//! | the section's future is dropped | is freed: the connection is closed | nothing; there is nobody to tell |
//! | the process is killed, or aborts | is freed as soon as the kernel closes the socket | nothing |
//! | the process freezes (stopped, swapped out, blocked) | stays held, and others wait | nothing |
//! | the connection breaks, or an administrator ends it | is free for others at once, and the section runs on | [`Lost`](crate::Error::Lost), see below |
//! | the server restarts or crashes | is gone; the server starts with none | `Lost` |
//! | failover to a standby | is gone: locks are not replicated | `Lost`; a server that still is a standby is refused as [`NotPrimary`](crate::Error::NotPrimary) |
//! | the old primary lives on beside the new one | both grant it | nothing: no lock of a database can tell |
//! | the network goes silent, no packet and no reset | is freed within 30 s, or what [`PostgresOptions::dead_host_within`] says | an error of the next statement, the release among them, after 10 s, or what [`Options::answer_within`](crate::Options::answer_within) says |
//! //! | a pooler in transaction mode is in between | can leak, and can be held by two | [`SessionNotPinned`](crate::Error::SessionNotPinned), if an answer gives it away |
//!
//! What is missing here is in the list of [what it does not do](crate#what-it-does-not-do).
//!
//! The bound for the silent network is the server's: without it a vanished host would keep its locks
//! for as long as TCP's defaults have it, more than two hours. It works by settings of the
//! connection (`tcp_keepalives_*`, `tcp_user_timeout`), which are set when a lock is first held on
//! it, and are the one thing that stays on a connection of yours when it goes back to its pool.
//! Behind a proxy they concern the proxy's connection, not yours. `idle_session_timeout`, where the
//! server has one, is switched off while a session lasts.
//!
//! [`PostgresOptions::dead_host_within`]:
//!     https://docs.rs/advisory-core/latest/advisory_core/postgres/struct.PostgresOptions.html
//!
//! # A lost lock
//!
//! `Lost` means: for some of the time others could have had this lock. Whoever sees it:
//!
//! - A section that runs on is told at its end: `with` and its kin return `Lost` instead of the
//!   section's value. What it has done stays done.
//! - Every call that is nested in the section and needs the connection fails from then on. The
//!   library never reconnects under a lock, and never takes one anew that was lost.
//! - [`LockGuard::release`](crate::LockGuard::release) returns `Lost`; so does that of a
//!   [`Session`](crate::Session). All locks of a session are lost together.
//! - [`LockGuard::is_lost`](crate::LockGuard::is_lost) and
//!   [`Session::is_lost`](crate::Session::is_lost) tell without asking the server. `true` is
//!   certain; `false` means that nobody has noticed. A long section looks there between its steps
//!   ([`Lock::with_guard`](crate::Lock::with_guard)).
//!
//! ```
//! use advisory::{Error, LockManager, MemoryBackend};
//!
//! # futures::executor::block_on(async {
//! let server = MemoryBackend::new();
//! let locks = LockManager::new(server.clone());
//! let import = locks.named("imports:run");
//!
//! let result = import.with(async || {
//!     // The connection breaks …
//!     server.kill(server.holders(import.key())[0].session);
//!     // … and nothing is built on it any more.
//!     let nested = locks.named("digest").with(async || ()).await;
//!     assert!(nested.is_err());
//!     // The section itself runs on.
//!     17
//! }).await;
//! assert!(matches!(result, Err(Error::Lost { .. })));
//!
//! // The next one gets a new connection.
//! assert_eq!(import.with(async || 17).await?, 17);
//! # Ok::<(), advisory::Error>(())
//! # }).unwrap();
//! ```
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
//! | it does any of these on a session that others use | the statement is finished by whoever comes next; what it was granted is given back | as above; the others keep their locks |
//!
//! The server looks at a socket only between statements, so a wait that was abandoned stays in its
//! queue to the end of its slice. That is at most 0.4 × `deadlock_timeout` (0.4 s by default);
//! 1.5 × `deadlock_timeout` (at most 5 s) for an owner that holds other locks and has waited for
//! longer than `deadlock_timeout`; and up to 30 s for a writer that has waited behind readers for
//! long.
//!
//! A guard may be dropped anywhere, outside any runtime as well. If its lock was alone on its
//! connection, the connection is closed, and the lock is free a millisecond or so later. If others
//! live there, an unlock is sent, or left to whoever uses the connection at the moment. But prefer
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
//! # Which errors to try again
//!
//! | error | again? |
//! |---|---|
//! | `Timeout`, `PoolExhausted` | yes, later; look at who holds the lock, or at the size of the pool |
//! | `Deadlock` | yes, from the outermost section on, so that its locks are given back |
//! | `Lost` | yes, if the section is idempotent |
//! | `Backend`, `LockTableFull` | yes, after a pause; something has to be mended meanwhile |
//! | `NotPrimary`, `SessionNotPinned`, `Unsupported` | no: the connection goes to the wrong place |
//! | `Closed`, `CloseInsideLock`, `ForeignLock` | no: the program is wrong, or ending |
