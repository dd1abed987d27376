//! The ways to take a lock that are compared.

mod handwritten;
mod ours;
mod pg_advisory_lock;
mod pools;
mod raw;

use std::{ops::Range, sync::Arc};

use async_trait::async_trait;
use futures::future::BoxFuture;

use self::ours::Manner;

/// What runs while a lock is held.
pub(crate) type Section<'a> = &'a (dyn Fn() -> BoxFuture<'a, ()> + Send + Sync);

/// One way to take a lock, ready to be used by any number of tasks.
#[async_trait]
pub(crate) trait Rival: Send + Sync {
    /// Takes the lock, waiting for it if need be, runs the section, and gives the lock back.
    async fn cycle(&self, key: i64, section: Section<'_>);

    /// Whether the lock could be taken without waiting. Then it has been given back.
    async fn try_lock(&self, key: i64) -> bool;

    /// Takes many locks that are free on one connection, runs the section, and gives them back.
    async fn hold(&self, keys: Range<i64>, section: Section<'_>);

    /// Runs a query on a connection of the same pool.
    async fn query(&self);
}

/// Where a rival takes locks.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) url: String,
    /// What its connections are called in `pg_stat_activity`.
    pub(crate) application_name: String,
    /// The size of its pool.
    pub(crate) connections: usize,
    /// How many of them our managers may use at a time; `None` leaves it to them.
    pub(crate) for_locks: Option<usize>,
    /// Whether somebody else may have the lock, so that one has to wait for it.
    pub(crate) contended: bool,
}

/// A rival by its name.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// Whose numbers its own are divided by.
    pub(crate) against: Option<&'static str>,
    open: fn(Place) -> BoxFuture<'static, Arc<dyn Rival>>,
}

impl Entry {
    pub(crate) async fn open(&self, place: Place) -> Arc<dyn Rival> {
        (self.open)(place).await
    }
}

/// The raw protocol: one connection, so one owner of locks.
pub(crate) const RAW: Entry = Entry {
    name: "raw protocol, no pool",
    against: Some(HANDWRITTEN.name),
    open: |place| Box::pin(raw::open(place)),
};

pub(crate) const HANDWRITTEN: Entry = Entry {
    name: "hand-written, deadpool-postgres",
    against: None,
    open: |place| Box::pin(handwritten::open(place)),
};

pub(crate) const TOKIO_POSTGRES: Entry = Entry {
    name: "`lock`, tokio-postgres",
    against: Some(HANDWRITTEN.name),
    open: |place| Box::pin(ours::on_tokio_postgres(place, Manner::GUARDED)),
};

const TOKIO_POSTGRES_SECTION: Entry = Entry {
    name: "`with`, tokio-postgres",
    against: Some(HANDWRITTEN.name),
    open: |place| Box::pin(ours::on_tokio_postgres(place, Manner::WATCHED)),
};

const TOKIO_POSTGRES_SHARED: Entry = Entry {
    name: "`lock`, tokio-postgres, shared",
    against: Some(HANDWRITTEN.name),
    open: |place| Box::pin(ours::on_tokio_postgres(place, Manner::SHARED)),
};

pub(crate) const TOKIO_POSTGRES_BATCHED: Entry = Entry {
    name: "`try_lock_each`, tokio-postgres",
    against: Some(HANDWRITTEN.name),
    open: |place| Box::pin(ours::on_tokio_postgres(place, Manner::BATCHED)),
};

pub(crate) const PG_ADVISORY_LOCK: Entry = Entry {
    name: "`sqlx::PgAdvisoryLock`",
    against: None,
    open: |place| Box::pin(pg_advisory_lock::open(place)),
};

pub(crate) const SQLX: Entry = Entry {
    name: "`lock`, sqlx",
    against: Some(PG_ADVISORY_LOCK.name),
    open: |place| Box::pin(ours::on_sqlx(place, Manner::GUARDED)),
};

const SQLX_SECTION: Entry = Entry {
    name: "`with`, sqlx",
    against: Some(PG_ADVISORY_LOCK.name),
    open: |place| Box::pin(ours::on_sqlx(place, Manner::WATCHED)),
};

const SQLX_SHARED: Entry = Entry {
    name: "`lock`, sqlx, shared",
    against: Some(PG_ADVISORY_LOCK.name),
    open: |place| Box::pin(ours::on_sqlx(place, Manner::SHARED)),
};

pub(crate) const SQLX_BATCHED: Entry = Entry {
    name: "`try_lock_each`, sqlx",
    against: Some(PG_ADVISORY_LOCK.name),
    open: |place| Box::pin(ours::on_sqlx(place, Manner::BATCHED)),
};

pub(crate) const MEMORY: Entry = Entry {
    name: "`lock`, memory",
    against: None,
    open: |_| Box::pin(ours::in_memory(Manner::GUARDED)),
};

/// All that have a pool, each after the one that it is measured against.
pub(crate) const POOLED: &[Entry] = &[
    HANDWRITTEN,
    TOKIO_POSTGRES,
    TOKIO_POSTGRES_SECTION,
    TOKIO_POSTGRES_SHARED,
    PG_ADVISORY_LOCK,
    SQLX,
    SQLX_SECTION,
    SQLX_SHARED,
];
