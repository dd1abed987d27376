//! One pool of sqlx connections, for the locks and for the application's own queries.
//!
//! ```sh
//! DATABASE_URL=postgres://user@host/database cargo run --example sqlx_pool
//! ```
//!
//! It makes a table `advisory_example_stock`, and drops it at the end.

use std::{env, error::Error, time::Duration};

use advisory::{LockManager, SqlxBackend};
use futures::future::try_join_all;
use sqlx::{PgPool, postgres::PgPoolOptions};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

const PENCILS: i32 = 3;
const BUYERS: u32 = 5;

#[tokio::main]
async fn main() -> Result<()> {
    let url = env::var("DATABASE_URL")
        .map_err(|_| "this example needs a server: DATABASE_URL=postgres://user@host/database")?;
    let pool = PgPoolOptions::new()
        // Each buyer's lock takes a connection, whether it is held or waited for. Whoever has the
        // lock needs one more, for the queries.
        .max_connections(BUYERS + 1)
        .acquire_timeout(Duration::from_secs(10))
        .connect(&url)
        .await?;
    let locks = LockManager::new(SqlxBackend::from_pool(pool.clone()));

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
async fn sell(locks: &LockManager, pool: &PgPool) -> Result<bool> {
    let section = async || {
        let pencils: i32 = sqlx::query_scalar("SELECT pencils FROM advisory_example_stock")
            .fetch_one(pool)
            .await?;
        if pencils == 0 {
            return Ok(false);
        }
        take_payment().await;
        sqlx::query("UPDATE advisory_example_stock SET pencils = $1")
            .bind(pencils - 1)
            .execute(pool)
            .await?;
        Ok(true)
    };
    locks.named("stock:pencils").with(section).await?
}

/// Stands for a call to the outside.
async fn take_payment() {
    tokio::task::yield_now().await;
}

async fn open_shop(pool: &PgPool) -> Result<()> {
    sqlx::raw_sql(
        "DROP TABLE IF EXISTS advisory_example_stock; \
         CREATE TABLE advisory_example_stock (pencils int NOT NULL)",
    )
    .execute(pool)
    .await?;
    sqlx::query("INSERT INTO advisory_example_stock VALUES ($1)")
        .bind(PENCILS)
        .execute(pool)
        .await?;
    Ok(())
}

/// Returns what is left.
async fn close_shop(pool: &PgPool) -> Result<i32> {
    let left = sqlx::query_scalar("SELECT pencils FROM advisory_example_stock")
        .fetch_one(pool)
        .await?;
    sqlx::raw_sql("DROP TABLE advisory_example_stock")
        .execute(pool)
        .await?;
    Ok(left)
}
