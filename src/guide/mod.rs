//! The guide: what the reference does not say in one place.
//!
//! | page | for those who want to know |
//! |---|---|
//! | [`choosing`] | which backend to take, how large the pool has to be, what a lock costs, which options there are |
//! | [`servers`] | which servers, versions and poolers will do, how others are found out, pinned mode, roles, failover, the check-up |
//! | [`failure`] | what can go wrong, who is told, what is left behind, what is theirs to do; fencing tokens; logging |
//! | [`deadlocks`] | what a section may enter again, who waits for whom, which cycles are found |
//! | [`performance`] | how fast it is beside other ways, what takes the time, fairness, how it grows |
//! | [`testing`] | how to test code that takes locks, without a server |
//! | [`backend`] | how to write a backend, and how to test it |
//! | [`design`] | why it works the way it does |
//!
//! What the library does not do, or not yet, stands in one list:
//! [What it does not do](crate#what-it-does-not-do).
//!
//! The modules hold no code. Their examples are tested.

pub mod backend;
pub mod choosing;
pub mod deadlocks;
pub mod design;
pub mod failure;
pub mod performance;
pub mod servers;
pub mod testing;
