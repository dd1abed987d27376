//! Nested locks, and who waits for whom.
//!
//! # Owners
//!
//! Owners exclude each other; an owner never excludes itself. To the server an owner is a
//! connection. These are owners:
//!
//! - a section (`with`, `try_with`, `with_timeout`, `with_guard`) outside of all others, together
//!   with everything that is nested in it;
//! - a [`Session`](crate::Session), with the locks that are taken on it and the futures that run in
//!   its [`scope`](crate::Session::scope);
//! - a guard that was taken outside of these.
//!
//! # Contexts
//!
//! A section, and a scope, is a *context*: calls on the same manager that are made while it is
//! polled use its connection. Not by the thread, and on no particular runtime: the context goes
//! with the future. What it includes is what is polled inside: functions that are awaited, `join!`,
//! streams. What it does not include is what is polled elsewhere: spawned tasks, threads.
//!
//! A spawned task is a stranger. If its section awaits it, and it wants the section's lock, both
//! wait for ever. Give it the session:
//!
//! ```
//! use advisory::{LockManager, MemoryBackend, Session};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> advisory::Result<()> {
//! let locks = LockManager::new(MemoryBackend::new());
//! let index = locks.named("search:index");
//!
//! index.with(async || {
//!     // In a task of its own, the same call misses.
//!     let stranger = index.clone();
//!     let missed = tokio::spawn(async move { stranger.try_with(async || ()).await });
//!     assert_eq!(missed.await.unwrap()?, None);
//!
//!     // Inside the section's session it enters again.
//!     let (session, helper) = (Session::current().unwrap(), index.clone());
//!     let entered = tokio::spawn(async move {
//!         session.scope(async { helper.try_with(async || "entered").await }).await
//!     });
//!     assert_eq!(entered.await.unwrap()??, Some("entered"));
//!     Ok::<(), advisory::Error>(())
//! }).await?
//! # }
//! ```
//!
//! Two managers never share a context, even on one backend.
//!
//! **Do not run an executor inside a section.** Some `block_on`s, and everything that runs an
//! executor's other tasks on the calling thread, would poll strangers inside your context: they
//! would use your connection, and enter your lock while you are in it. Await instead. For the same
//! reason, do not poll a future inside a section that is not part of it:
//!
//! ```
//! use std::pin::pin;
//!
//! use advisory::{LockManager, MemoryBackend};
//!
//! # futures::executor::block_on(async {
//! let locks = LockManager::new(MemoryBackend::new());
//! let account = locks.named("account:7");
//!
//! // Made outside, polled inside: it is part of the section, and does not wait.
//! let mut foreign = pin!(account.with(async || "inside"));
//! account.with(async || {
//!     assert_eq!((&mut foreign).await?, "inside");
//!     Ok::<(), advisory::Error>(())
//! }).await??;
//! # Ok::<(), advisory::Error>(())
//! # }).unwrap();
//! ```
//!
//! # Entering again
//!
//! A call enters again, at no cost, what its own section or one around it holds in the same mode:
//! what an ancestor has, its descendants may use. The lock is freed when the last of them is done.
//!
//! Siblings are sections that run at the same time inside one owner (`join!`). The server cannot
//! keep them apart, for it sees one connection. The library does, by ancestry:
//!
//! - A key that a sibling has taken is not yours. You wait for it, or your try misses.
//! - A key that an enclosing section holds belongs to all in it. So siblings under one lock
//!   **overlap** in it: a nested call is no mutex between them.
//!
//! ```
//! use std::{cell::Cell, time::Duration};
//!
//! use advisory::{LockManager, MemoryBackend};
//!
//! # futures::executor::block_on(async {
//! let locks = LockManager::new(MemoryBackend::new());
//! let (job, item) = (locks.named("job"), locks.named("item"));
//!
//! // Counts how many do it at the same time.
//! let (inside, most) = (Cell::new(0), Cell::new(0));
//! let work = async || {
//!     inside.update(|inside| inside + 1);
//!     most.update(|most| most.max(inside.get()));
//!     futures_timer::Delay::new(Duration::from_millis(1)).await;
//!     inside.update(|inside| inside - 1);
//! };
//!
//! // Each takes `item` for itself: one after the other.
//! job.with(async || {
//!     let (a, b) = futures::join!(item.with(&work), item.with(&work));
//!     a.and(b)
//! }).await??;
//! assert_eq!(most.get(), 1);
//!
//! // `item` is held around them: both at once.
//! item.with(async || {
//!     let (a, b) = futures::join!(item.with(&work), item.with(&work));
//!     a.and(b)
//! }).await??;
//! assert_eq!(most.get(), 2);
//! # Ok::<(), advisory::Error>(())
//! # }).unwrap();
//! ```
//!
//! # Guards
//!
//! `lock` and its kin open no context. Inside a section a guard belongs to the section, which then
//! enters its key again, and it may outlive the section. Outside, each guard is an owner of its
//! own, so a task that holds one and asks for the same key waits for itself:
//!
//! ```
//! use std::time::Duration;
//!
//! use advisory::{Error, LockManager, MemoryBackend};
//!
//! # futures::executor::block_on(async {
//! let locks = LockManager::new(MemoryBackend::new());
//! let import = locks.named("imports:run");
//!
//! let guard = import.lock().await?;
//! let again = import.lock_timeout(Duration::from_millis(10)).await;
//! assert!(matches!(again, Err(Error::Timeout { .. })));
//! guard.release().await?;
//!
//! // On a session it enters again.
//! let session = locks.session().await?;
//! let guard = session.lock(&import).await?;
//! let again = session.lock(&import).await?;
//! # guard.release().await?;
//! # again.release().await?;
//! # session.release().await?;
//! # Ok::<(), advisory::Error>(())
//! # }).unwrap();
//! ```
//!
//! # Shared locks
//!
//! A section that holds a lock shared may take it exclusively as well, an *upgrade*, and waits for
//! the other readers. If two readers upgrade, each waits for the other: one gets `Deadlock`, as a
//! rule within milliseconds, and keeps its shared lock; the other goes on when that is released.
//! Where an upgrade is likely, take the lock exclusively from the start.
//!
//! # Which cycles are found
//!
//! | who waits for whom | what ends it |
//! |---|---|
//! | sections or sessions, each for a lock that the next one holds | [`Deadlock`](crate::Error::Deadlock) for one of them, about three seconds after the cycle closed (with a `deadlock_timeout` of 1 s; from 30 s on the server finds none, and timeouts end it) |
//! | siblings of one owner | `Deadlock`, at once |
//! | two tasks that each hold a *guard* and want the other's | their timeouts: to the server these are four owners, of which two wait and two do nothing |
//! | a section that awaits a spawned task which wants its lock | a timeout |
//! | in [pinned mode](super::servers#pinned-mode) a section that builds an index concurrently, and an owner that holds another lock and waits for that section | a timeout: the build waits for the owner's transaction, and the server does not see who waits for the build |
//! | a lock, and a connection of a pool that is used up | the pool's limit; see [`choosing`](super::choosing) |
//! | a lock, and a row lock, a mutex or a channel of your own | a timeout: the server sees one half at most |
//!
//! The victim of a deadlock keeps what it held before. Let the error go up through the outermost
//! section, so that its locks are freed, and start again there.
//!
//! # How not to have any
//!
//! - Take locks in one order everywhere: outer things before inner ones, equals sorted by name.
//! - Take several locks in nested sections, or on a [`Session`](crate::Session), not as guards of
//!   their own.
//! - Use `with_timeout` where a lock is taken inside another one, or inside anything else that
//!   others may wait for. The error names the holder.
//! - Do not wait for other tasks while you hold a lock.
