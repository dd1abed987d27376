//! What can be wrong with a backend, by what it is wrong about.

mod backends;
mod batches;
mod losses;
mod sessions;
mod tokens;
mod waits;

pub(crate) use self::{backends::*, batches::*, losses::*, sessions::*, tokens::*, waits::*};
