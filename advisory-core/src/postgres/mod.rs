//! What every PostgreSQL backend has in common, over a small driver trait.
mod driver;
pub use driver::{Connection, DriverError, Param, Pool, Row, Value};
