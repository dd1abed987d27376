//! Writing a backend.
//!
//! Users never need this page. A backend author depends on `advisory-core` alone:
//!
//! ```toml
//! [dependencies]
//! advisory-core = "0.1" # features = ["postgres"], for another PostgreSQL driver
//! async-trait = "0.1"
//!
//! [dev-dependencies]
//! # A feature for each runtime that the suite is to run on: tokio, smol, async-std; and postgres.
//! advisory-conformance-tests = { version = "0.1", features = ["tokio"] }
//! ```
//!
//! # Another PostgreSQL driver
//!
//! Then do not implement the traits below. Switch on the feature `postgres` of `advisory-core`, and
//! implement the two smaller ones of its module `postgres`: `Pool` (check a connection out; how many
//! there are, if others use them too; close) and `Connection` (run a cached statement; run a batch in
//! one message; is it closed; is that noticed while nothing runs; give it back). Its `PostgresBackend`
//! does the rest, from the SQL to the meaning of the server's errors. The documentation of that module
//! has the whole of such a backend.
//!
//! Three things are easy to get wrong: dropping a `Connection` has to *close* it, never to give it
//! back; nothing may reconnect it; and `notices_closing` is true only if the driver reads all the
//! time. If it is false the core probes, which costs little; if it is wrongly true, sections run
//! on for seconds after their connection was closed.
//!
//! # Anything else
//!
//! A backend is two traits. [`LockBackend`](crate::spi::LockBackend) opens sessions;
//! [`LockSession`](crate::spi::LockSession) is one owner of locks. Their documentation is the
//! contract; this is the way through it.
//!
//! 1. **A session owns.** Sessions exclude each other, by key and mode
//!    ([`LockMode::conflicts_with`](crate::LockMode::conflicts_with)). A session never excludes
//!    itself: it may hold a key in both modes, as two [`Claim`](crate::spi::Claim)s. The core does
//!    the counting; it never asks for a claim that the session already holds.
//! 2. **Its end frees.** Dropping a session, at any moment and on any thread, frees all that it
//!    holds and ends its wait. No runtime, no blocking, no panic. The core leans on this whenever
//!    it is in doubt.
//! 3. **Lost stays lost.** When the session has ended, every call fails, and
//!    [`is_lost`](crate::spi::LockSession::is_lost) is `true` for good.
//! 4. **[`submit`](crate::spi::LockSession::submit) does not wait.** It answers each request of the
//!    batch in its place: was it taken, was it held. A miss is no error.
//! 5. **[`wait`](crate::spi::LockSession::wait) waits one turn**, no longer than
//!    [`Turn::patience`](crate::spi::Turn::patience), and as short as you like. At the end of the
//!    turn nothing is left in a queue. The core calls again.
//! 6. **A cycle is an error.** A session that waits for one that waits for it gets
//!    [`Error::deadlock`](crate::Error::deadlock), and keeps what it holds.
//! 7. **After an error** the session is lost, or holds none of the claims that the call named and
//!    all others as before. If you cannot be sure, be lost.
//! 8. **Errors are mapped in the backend.** What has no meaning here is
//!    [`Error::backend`](crate::Error::backend), with the cause.
//! 9. **Its loss is seen.** [`notices_loss`](crate::spi::LockSession::notices_loss) says whether
//!    `is_lost` turns true by itself, soon after the session has ended. If not, the core calls
//!    [`probe`](crate::spi::LockSession::probe) every half second while a section runs; if so, only
//!    when nothing was heard for long. A probe that fails, or has no answer in time, is a loss.
//! 10. **Tokens grow.** [`fencing_token`](crate::spi::LockSession::fencing_token) is larger at each
//!    call, from whatever session, also across a crash or restart of what keeps the locks.
//! 11. **[`recycle`](crate::spi::LockSession::recycle)** is called on a session that holds nothing,
//!    and is the only way back into a pool.
//!
//! The core makes one call at a time on a session, and polls a call that was begun to its end, even
//! if the task that wanted it has gone. It polls when it is woken, and not because somebody comes by: a
//! future that is pending without having arranged that stays so.
//!
//! What is yours to decide:
//!
//! - Whether a try heeds those who wait. Only, a writer must not wait for ever while readers come and
//!   go: let new readers miss as long as it stands in the queue.
//! - How long a turn is. If somebody else wants the session
//!   ([`Turn::wanted`](crate::spi::Turn::wanted)) make it short, for a release waits until it is over:
//!   50 ms in memory, 0.4 s on PostgreSQL, where a turn costs a round trip.
//! - Whether a wait whose caller has gone still ends with `Granted`. The core polls it to its end, and
//!   unlocks what it was granted.
//! - Whether [`open`](crate::spi::LockBackend::open) makes sure that a session out of a pool is alive.
//!   If it has died meanwhile, the first call on it says so.
//!
//! # A small backend
//!
//! It keeps its locks in a mutex, and can neither tell waiters that a lock is free nor queue them:
//! a turn is a nap and another try. That is a poor way to wait, but it keeps the contract. It has no
//! limit to the number of its sessions; the harness that runs the suite on it sets one, with a
//! semaphore.
//!
//! ```
//! use std::{
//!     collections::HashMap,
//!     sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::{AtomicBool, AtomicI64, Ordering}},
//!     time::Duration,
//! };
//!
//! use advisory_core::{
//!     Error, FencingToken, Holder, LockKey, LockMode, Result,
//!     spi::{Claim, LockBackend, LockSession, Request, SessionId, Turn, Waited},
//! };
//! use async_trait::async_trait;
//! use futures_timer::Delay;
//!
//! const NAP: Duration = Duration::from_millis(2);
//!
//! /// What all sessions share.
//! #[derive(Debug, Default)]
//! struct Space(Mutex<State>);
//!
//! #[derive(Debug, Default)]
//! struct State {
//!     /// The sessions that are alive, and what they hold.
//!     held: HashMap<SessionId, Vec<Claim>>,
//!     waiting: HashMap<SessionId, Claim>,
//!     /// The last fencing token that was given out.
//!     token: i64,
//! }
//!
//! impl Space {
//!     fn state(&self) -> MutexGuard<'_, State> {
//!         self.0.lock().unwrap_or_else(PoisonError::into_inner)
//!     }
//! }
//!
//! impl State {
//!     /// Who keeps the session from having the claim: holders, and before new readers writers that
//!     /// wait.
//!     fn blockers(&self, session: SessionId, claim: Claim) -> Vec<SessionId> {
//!         let conflicts = |other: &Claim| {
//!             other.key == claim.key && other.mode.conflicts_with(claim.mode)
//!         };
//!         let is_new = !self.of(session).iter().any(|held| held.key == claim.key);
//!         let yields = is_new && claim.mode == LockMode::Shared;
//!         let holders = self.held.iter().filter(|(_, held)| held.iter().any(conflicts));
//!         let writers = self.waiting.iter().filter(|(_, wanted)| yields && conflicts(wanted));
//!         let blockers = holders.map(|(id, _)| *id).chain(writers.map(|(id, _)| *id));
//!         blockers.filter(|id| *id != session).collect()
//!     }
//!
//!     /// What the session holds.
//!     fn of(&self, session: SessionId) -> &[Claim] {
//!         self.held.get(&session).map_or(&[], Vec::as_slice)
//!     }
//!
//!     /// Whether it is shared holders, and no others, who keep a writer waiting.
//!     fn is_read(&self, claim: Claim) -> bool {
//!         let mut held = self.held.values().flatten().filter(|held| held.key == claim.key);
//!         claim.mode == LockMode::Exclusive && held.all(|held| held.mode == LockMode::Shared)
//!     }
//!
//!     /// Whether those that keep the session from the claim wait for it in turn.
//!     fn is_deadlock(&self, session: SessionId, claim: Claim) -> bool {
//!         let mut open = self.blockers(session, claim);
//!         let mut seen = Vec::new();
//!         while let Some(blocker) = open.pop() {
//!             if blocker == session {
//!                 return true;
//!             }
//!             if !seen.contains(&blocker) {
//!                 seen.push(blocker);
//!                 let wanted = self.waiting.get(&blocker);
//!                 open.extend(wanted.into_iter().flat_map(|wanted| self.blockers(blocker, *wanted)));
//!             }
//!         }
//!         false
//!     }
//! }
//!
//! /// Opens sessions in one space.
//! #[derive(Debug, Default)]
//! struct Small {
//!     space: Arc<Space>,
//!     closed: AtomicBool,
//! }
//!
//! #[async_trait]
//! impl LockBackend for Small {
//!     async fn open(&self) -> Result<Box<dyn LockSession>> {
//!         static NEXT: AtomicI64 = AtomicI64::new(1);
//!         if self.closed.load(Ordering::Acquire) {
//!             return Err(Error::Closed);
//!         }
//!         let id = SessionId::new(0, NEXT.fetch_add(1, Ordering::Relaxed));
//!         self.space.state().held.insert(id, Vec::new());
//!         Ok(Box::new(SmallSession { space: Arc::clone(&self.space), id }))
//!     }
//!
//!     async fn close(&self) -> Result<()> {
//!         self.closed.store(true, Ordering::Release);
//!         Ok(())
//!     }
//! }
//!
//! #[derive(Debug)]
//! struct SmallSession {
//!     space: Arc<Space>,
//!     id: SessionId,
//! }
//!
//! #[async_trait]
//! impl LockSession for SmallSession {
//!     fn id(&self) -> Option<SessionId> {
//!         Some(self.id)
//!     }
//!
//!     fn is_lost(&self) -> bool {
//!         !self.space.state().held.contains_key(&self.id)
//!     }
//!
//!     /// It looks at the space itself.
//!     fn notices_loss(&self) -> bool {
//!         true
//!     }
//!
//!     async fn submit(&mut self, batch: &[Request]) -> Result<Vec<bool>> {
//!         let mut state = self.space.state();
//!         let mut answers = Vec::new();
//!         for request in batch {
//!             let free = state.blockers(self.id, request.claim()).is_empty();
//!             let held = state.held.get_mut(&self.id).ok_or_else(ended)?;
//!             let at = held.iter().position(|held| *held == request.claim());
//!             answers.push(match (*request, at) {
//!                 (Request::TryLock(claim), _) if free => {
//!                     held.push(claim);
//!                     true
//!                 }
//!                 (Request::Unlock(_), Some(at)) => {
//!                     held.swap_remove(at);
//!                     true
//!                 }
//!                 _ => false,
//!             });
//!         }
//!         Ok(answers)
//!     }
//!
//!     async fn wait(&mut self, claim: Claim, turn: Turn) -> Result<Waited> {
//!         {
//!             let mut state = self.space.state();
//!             if state.is_deadlock(self.id, claim) {
//!                 return Err(Error::deadlock(None));
//!             }
//!             state.waiting.insert(self.id, claim);
//!         }
//!         Delay::new(turn.patience.unwrap_or(NAP).min(NAP)).await;
//!         self.space.state().waiting.remove(&self.id);
//!         match self.submit(&[Request::TryLock(claim)]).await?[..] {
//!             [true] => Ok(Waited::Granted),
//!             _ => Ok(Waited::TurnOver { behind_readers: self.space.state().is_read(claim) }),
//!         }
//!     }
//!
//!     async fn holders(&mut self, key: LockKey) -> Result<Vec<Holder>> {
//!         self.probe().await?;
//!         let state = self.space.state();
//!         let held = state.held.iter().flat_map(|(id, held)| held.iter().map(|held| (*id, *held)));
//!         let of_key = held.filter(|(_, claim)| claim.key == key);
//!         Ok(of_key.map(|(id, claim)| Holder::new(id, key, claim.mode)).collect())
//!     }
//!
//!     async fn fencing_token(&mut self) -> Result<FencingToken> {
//!         self.probe().await?;
//!         let mut state = self.space.state();
//!         state.token += 1;
//!         Ok(FencingToken::new(state.token))
//!     }
//!
//!     async fn probe(&mut self) -> Result<()> {
//!         if self.is_lost() { Err(ended()) } else { Ok(()) }
//!     }
//!
//!     async fn recycle(self: Box<Self>) {}
//! }
//!
//! impl Drop for SmallSession {
//!     fn drop(&mut self) {
//!         let mut state = self.space.state();
//!         state.held.remove(&self.id);
//!         state.waiting.remove(&self.id);
//!     }
//! }
//!
//! fn ended() -> Error {
//!     Error::backend("the session has ended")
//! }
//!
//! # // The suite, as the next section has it.
//! # use advisory_conformance_tests::{Harness, Observer, SeenLock, run_case, runtime::Threads};
//! # #[derive(Debug)]
//! # struct SmallHarness;
//! # #[async_trait]
//! # impl Harness for SmallHarness {
//! #     async fn space(&self) -> Box<dyn advisory_conformance_tests::Space> {
//! #         Box::new(SmallSpace(Arc::default()))
//! #     }
//! # }
//! # #[derive(Debug)]
//! # struct SmallSpace(Arc<Space>);
//! # #[async_trait]
//! # impl advisory_conformance_tests::Space for SmallSpace {
//! #     async fn backend(&self, _connections: usize) -> Box<dyn LockBackend> {
//! #         Box::new(Small { space: Arc::clone(&self.0), closed: AtomicBool::default() })
//! #     }
//! #     fn observer(&self) -> &dyn Observer { self }
//! #     async fn remove(&self) {}
//! # }
//! # #[async_trait]
//! # impl Observer for SmallSpace {
//! #     async fn held(&self) -> Vec<SeenLock> {
//! #         let state = self.0.state();
//! #         let held = state.held.iter().flat_map(|(id, held)| held.iter().map(|held| (id.number(), *held)));
//! #         held.map(|(session, claim)| SeenLock { claim, session }).collect()
//! #     }
//! #     async fn waiters(&self, key: LockKey) -> usize {
//! #         self.0.state().waiting.values().filter(|claim| claim.key == key).count()
//! #     }
//! #     async fn sessions(&self) -> Vec<i64> {
//! #         self.0.state().held.keys().map(|id| id.number()).collect()
//! #     }
//! #     async fn terminate(&self, session: i64) {
//! #         let mut state = self.0.state();
//! #         state.held.retain(|id, _| id.number() != session);
//! #         state.waiting.retain(|id, _| id.number() != session);
//! #     }
//! # }
//! # fn main() {
//! #     for case in [
//! #         "acquire::serialises_a_racy_counter",
//! #         "acquire::leaves_nothing_behind",
//! #         "try_lock::misses_a_held_lock",
//! #         "timeout::late_names_the_holder",
//! #         "shared::both_modes_of_one_owner",
//! #         "shared::queued_writer_holds_new_readers_off",
//! #         "nesting::cancelled_wait_keeps_the_outer_lock",
//! #         "deadlock::victim_keeps_what_it_holds",
//! #         "loss::is_told_after_the_section",
//! #         "watching::stops_a_section",
//! #         "fencing::tokens_grow_when_a_holder_is_lost",
//! #         "close::refuses_new_work",
//! #     ] {
//! #         run_case(SmallHarness, Threads, case);
//! #     }
//! # }
//! ```
//!
//! # Run the suite
//!
//! The package `advisory-conformance-tests` has a case for each guarantee of the traits. Its macro
//! `suite!` makes a `#[test]` of every case, and `every_poll_suite!` drops futures at every point where
//! they wait. So a backend's `tests/conformance.rs` is short:
//!
//! - `Harness::space` makes a lock space for one case, which shares nothing with others;
//! - `Space::backend` makes a backend on it, as another replica would have it, with a pool of the
//!   given size, if your backend has one;
//! - `Observer` looks at the space *without* your backend's help, and ends a session by force. If
//!   it asked the backend, a mistake there would vouch for itself.
//!
//! ```text
//! mod threads {
//!     use super::*;
//!     suite!(SmallHarness, runtime::Threads);
//! }
//!
//! mod tokio {
//!     use super::*;
//!     suite!(SmallHarness, runtime::Tokio::new());
//! }
//! ```
//!
//! Both arguments are expressions, evaluated once for each case. Run it on every runtime that your
//! users may have (`runtime::Threads`, `Tokio::new()`, `Smol`, `AsyncStd`). The crate's documentation
//! has a whole harness. A backend that hangs fails slowly: each case takes 10 to 120 s to give up.
//!
//! A PostgreSQL driver writes less: it implements the suite's `postgres::Driver` (feature
//! `postgres`), and `Postgres::new(driver)` is its harness, with a database of its own for each
//! case, on a throw-away server that it starts. `postgres_suite!` adds the cases that are
//! PostgreSQL's alone.
