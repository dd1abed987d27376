//! One pool of tokio-postgres connections, for the locks and for the application's own queries.
//!
//! ```sh
//! DATABASE_URL=postgres://user@host/database cargo run --example tokio_postgres_pool
//! ```
//!
//! It makes a table `advisory_example_stock`, and drops it at the end.

use std::{env, error::Error, time::Duration};

use advisory::{LockManager, TokioPostgresBackend};
use deadpool_postgres::{Manager, Pool, Runtime};
use futures::future::try_join_all;
use tokio_postgres::NoTls;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

const PENCILS: i32 = 3;
const BUYERS: usize = 5;

#[tokio::main]
async fn main() -> Result<()> {
    let url = env::var("DATABASE_URL")
        .map_err(|_| "this example needs a server: DATABASE_URL=postgres://user@host/database")?;
    let pool = Pool::builder(Manager::new(url.parse()?, NoTls))
        // Each buyer's lock takes a connection, whether it is held or waited for. Whoever has the
        // lock needs one more, for the queries.
        .max_size(BUYERS + 1)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(Duration::from_secs(10)))
        .build()?;
    let locks = LockManager::new(TokioPostgresBackend::from_pool(pool.clone()));

    open_shop(&pool).await?;
    let sales = try_join_all((0..BUYERS).map(|_| sell(&locks, &pool))).await?;
    for (buyer, sold) in sales.iter().enumerate() {
        let outcome = if *sold {
            "bought a pencil"
        } else {
            "came too late"
        };
        println!("buyer {buyer} {outcome}");
    }

    // Closing the locks leaves the pool open: it is the application's.
    locks.close().await?;
    let left = close_shop(&pool).await?;

    let sold: i32 = sales.into_iter().map(i32::from).sum();
    assert_eq!((sold, left), (PENCILS, 0), "pencils were sold twice");
    println!("\nOf {PENCILS} pencils {sold} were sold.");
    Ok(())
}

/// Sells a pencil if there is one.
///
/// What needs the lock is not one transaction: a payment lies between the two queries.
async fn sell(locks: &LockManager, pool: &Pool) -> Result<bool> {
    let section = async || {
        let client = pool.get().await?;
        let row = client
            .query_one("SELECT pencils FROM advisory_example_stock", &[])
            .await?;
        let pencils: i32 = row.get(0);
        if pencils == 0 {
            return Ok(false);
        }
        take_payment().await;
        let fewer = pencils - 1;
        client
            .execute("UPDATE advisory_example_stock SET pencils = $1", &[&fewer])
            .await?;
        Ok(true)
    };
    locks.named("stock:pencils").with(section).await?
}

/// Stands for a call to the outside.
async fn take_payment() {
    tokio::task::yield_now().await;
}

async fn open_shop(pool: &Pool) -> Result<()> {
    let table = format!(
        "DROP TABLE IF EXISTS advisory_example_stock; \
         CREATE TABLE advisory_example_stock AS SELECT {PENCILS} AS pencils"
    );
    pool.get().await?.batch_execute(&table).await?;
    Ok(())
}

/// Returns what is left.
async fn close_shop(pool: &Pool) -> Result<i32> {
    let client = pool.get().await?;
    let row = client
        .query_one("SELECT pencils FROM advisory_example_stock", &[])
        .await?;
    client
        .batch_execute("DROP TABLE advisory_example_stock")
        .await?;
    Ok(row.get(0))
}
