//! What the [queue](crate::queue) is synchronised with, in one place: a test of its own puts the
//! types of a model checker there.

pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
