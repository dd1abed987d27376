//! A library that needs locks, and an application that uses it.
//!
//! ```sh
//! cargo run --example library_author
//! cargo test --test library_author      # the library's own tests
//! ```
//!
//! The library is `outbox.rs`: it depends on `advisory-core` alone. The application is this file:
//! it picks the backend, and hands its lock manager to the library.

pub mod outbox;

use advisory::{LockManager, MemoryBackend};
use futures::executor::block_on;
use outbox::{Outbox, Table};

fn main() -> advisory::Result<()> {
    block_on(async {
        let locks = LockManager::new(MemoryBackend::new());
        let outbox = Outbox::new(&locks, &Table::default());
        outbox.add("welcome");
        outbox.add("your invoice");

        let sent = outbox
            .deliver(async |message| println!("sent: {message}"))
            .await?;
        assert_eq!(sent, Some(2));

        // The application has a lock that is called as one of the library's is.
        let ours = locks.named("cleanup").lock().await?;
        let deleted = outbox.cleanup().await?;
        assert_eq!(deleted, Some(2), "the two locks have met");
        println!("The outbox cleaned up while the application held its own lock `cleanup`.");

        ours.release().await?;
        locks.close().await
    })
}
