//! What a backend implements: [`LockBackend`] opens sessions, [`LockSession`] owns locks.
//!
//! Users never need this module; they use [`LockManager`](crate::LockManager) and what it hands
//! out. It is for those who write a backend, or a library that takes one.
//!
//! # The model
//!
//! A *session* is an owner of locks. Owners exclude each other; an owner never excludes itself, so
//! whatever a session already holds it is granted again, and the server counts. A session that
//! ends, for whatever reason, frees all that it held. That last rule is the one that everything
//! here leans on: when in doubt, a session is dropped.
//!
//! # What the core does, and what a backend does
//!
//! The core decides *when* a session is asked for something: one call at a time, never two at
//! once, and a call that was begun is polled to its end before the next one, even if the task that
//! began it has been cancelled. It keeps count of re-entered locks, so that a session holds each
//! [`Claim`] at most once. It never asks for a claim that the session already holds.
//!
//! A backend decides *how*: which statements are sent, how long one turn of waiting takes, and
//! what its driver's errors mean.
//!
//! # For implementers
//!
//! Run the conformance suite (`advisory-conformance-tests`) against your backend; it holds each
//! guarantee of these traits as a case. A backend for another PostgreSQL driver need not implement
//! these traits: with the feature `postgres`, the module `advisory_core::postgres` brings them for
//! everything that implements its smaller driver traits.

mod backend;
mod claim;
mod session;
mod wait;

pub use backend::LockBackend;
pub use claim::{Claim, Request};
pub use session::{LockSession, SessionId};
pub use wait::{Turn, Waited};
