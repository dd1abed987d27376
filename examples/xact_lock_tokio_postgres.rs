//! A named lock and a transaction-level lock of PostgreSQL's, which exclude each other.
//!
//! ```sh
//! DATABASE_URL=postgres://user@host/database cargo run --example xact_lock_tokio_postgres
//! ```
//!
//! If all the work fits into one transaction, `pg_advisory_xact_lock` alone is simpler: it needs
//! no connection but the transaction's, and ends with it. A section of this library is for work
//! that does not fit: it talks to the outside, or spans several transactions.
//!
//! The two are not interchangeable: one ends with its transaction, the other with its section, and
//! neither re-enters the other. But they conflict on the same key. So where a resource needs both,
//! the transactions take the key of the named lock.

use std::{env, error::Error};

use advisory::{LockKey, LockManager, TokioPostgresBackend};
use deadpool_postgres::{Manager, Pool, Runtime};
use tokio_postgres::NoTls;

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

#[tokio::main]
async fn main() -> Result<()> {
    let url = env::var("DATABASE_URL")
        .map_err(|_| "this example needs a server: DATABASE_URL=postgres://user@host/database")?;
    let pool = Pool::builder(Manager::new(url.parse()?, NoTls))
        // For the section, the transaction, and the look at the server from inside the section.
        .max_size(3)
        .runtime(Runtime::Tokio1)
        .build()?;
    let locks = LockManager::new(TokioPostgresBackend::from_pool(pool.clone()));

    let lock = locks.named("customer:42");
    let LockKey::BigInt(key) = lock.key() else {
        unreachable!("the key of a name is one number");
    };

    // The section comes first, and the transaction waits for its end.
    let section = async || -> Result<_> {
        let transaction = tokio::spawn(transaction(pool.clone(), key));
        while !one_waits(&pool, key).await? {
            assert!(!transaction.is_finished(), "both have had the lock");
        }
        println!("the section runs, the transaction waits");
        Ok(transaction)
    };
    let transaction = lock.with(section).await??;
    transaction.await??;
    println!("the section has ended, the transaction ran");

    // The transaction comes first, and the section finds the lock busy.
    let mut client = pool.get().await?;
    let transaction = client.transaction().await?;
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&key])
        .await?;
    let during = lock.try_with(async || ()).await?;
    assert_eq!(during, None, "both have the lock");
    println!("the transaction runs, the section is skipped");

    transaction.commit().await?;
    let afterwards = lock.try_with(async || ()).await?;
    assert_eq!(
        afterwards,
        Some(()),
        "the transaction's end did not free it"
    );
    println!("the transaction has ended, the section ran");

    locks.close().await?;
    Ok(())
}

/// Work that fits into one transaction, and that no section for this customer may overlap.
async fn transaction(pool: Pool, key: i64) -> Result<()> {
    let mut client = pool.get().await?;
    let transaction = client.transaction().await?;
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&key])
        .await?;
    // … the statements …
    transaction.commit().await?;
    Ok(())
}

/// Whether somebody waits for the key on the server.
async fn one_waits(pool: &Pool, key: i64) -> Result<bool> {
    let client = pool.get().await?;
    let row = client
        .query_one(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
             AND (classid::bigint << 32) | objid::bigint = $1 AND objsubid = 1)",
            &[&key],
        )
        .await?;
    Ok(row.get(0))
}
