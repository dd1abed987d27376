//! A fencing token on a real table: a replica that was frozen, and has lost its lock meanwhile,
//! overwrites nothing.
//!
//! ```sh
//! DATABASE_URL=postgres://user@host/database cargo run --example fencing
//! ```
//!
//! It makes a table `advisory_example_report`, and drops it at the end.

use std::{env, error::Error};

use advisory::{FencingToken, LockManager, TokioPostgresBackend};
use deadpool_postgres::{Manager, Pool, Runtime};
use tokio_postgres::NoTls;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

#[tokio::main]
async fn main() -> Result<()> {
    let url = env::var("DATABASE_URL")
        .map_err(|_| "this example needs a server: DATABASE_URL=postgres://user@host/database")?;
    let (first, second) = (Replica::start(&url)?, Replica::start(&url)?);
    create_table(&first.pool).await?;

    let guard = first.locks.named("report:7").lock().await?;
    let token = guard.fencing_token().await?;
    let rows = first.write("first", token).await?;
    println!("the first replica has the lock, and writes {rows} row");

    // A frozen process notices nothing of this.
    first.end_connection_of_holder().await?;
    println!("the first replica is frozen, and its connection ends");

    let lock = second.locks.named("report:7");
    let section = lock.with_guard(async |guard| {
        let token = guard.fencing_token().await?;
        second.write("second", token).await
    });
    let rows = section.await??;
    println!("the second replica takes over, and writes {rows} row");

    // It goes on where it was.
    let late = first.write("first", token).await?;
    println!("the first replica wakes up, and writes {late} rows");
    let report = drop_table(&first.pool).await?;
    assert_eq!((late, report.as_str()), (0, "second"), "it was overwritten");

    let lost = guard.release().await.expect_err("its connection has ended");
    println!("the first replica is told: {lost}");
    Ok(())
}

/// Stands for a process on a host of its own.
struct Replica {
    locks: LockManager,
    pool: Pool,
}

impl Replica {
    fn start(url: &str) -> Result<Self> {
        let pool = Pool::builder(Manager::new(url.parse()?, NoTls))
            .max_size(3)
            .runtime(Runtime::Tokio1)
            .build()?;
        let locks = LockManager::new(TokioPostgresBackend::from_pool(pool.clone()));
        Ok(Self { locks, pool })
    }

    /// Writes the report, unless somebody has who got the lock later. Returns the number of rows
    /// that were changed: none means that the lock is somebody else's by now.
    async fn write(&self, body: &str, token: FencingToken) -> Result<u64> {
        let update = "UPDATE advisory_example_report SET body = $1, fence = $2 \
                      WHERE id = 7 AND fence <= $2";
        let client = self.pool.get().await?;
        let rows = client.execute(update, &[&body, &token.as_i64()]).await?;
        Ok(rows)
    }

    /// Stands for a network that breaks, or an administrator.
    async fn end_connection_of_holder(&self) -> Result<()> {
        let client = self.pool.get().await?;
        for holder in self.locks.named("report:7").holders().await? {
            let end = format!("SELECT pg_terminate_backend({}, 10000)", holder.session);
            client.batch_execute(&end).await?;
        }
        Ok(())
    }
}

async fn create_table(pool: &Pool) -> Result<()> {
    let table = "DROP TABLE IF EXISTS advisory_example_report; \
                 CREATE TABLE advisory_example_report \
                     (id bigint PRIMARY KEY, body text, fence bigint NOT NULL DEFAULT 0); \
                 INSERT INTO advisory_example_report VALUES (7, 'empty')";
    pool.get().await?.batch_execute(table).await?;
    Ok(())
}

/// Returns what the report was.
async fn drop_table(pool: &Pool) -> Result<String> {
    let client = pool.get().await?;
    let row = client
        .query_one("SELECT body FROM advisory_example_report", &[])
        .await?;
    client
        .batch_execute("DROP TABLE advisory_example_report")
        .await?;
    Ok(row.get(0))
}
