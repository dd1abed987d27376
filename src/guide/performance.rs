//! What locks cost in time, beside what one would use without this library, and how that grows.
//!
//! `cargo bench --bench locks` makes all tables of this page but the last, on a throw-away server. The
//! figures here are those of one such run: two cores, which the server had to share with its
//! clients, PostgreSQL 15 over TCP on the same host, tokio with several threads. On so few cores they vary
//! from run to run by a fifth and more, so look at the ratios, and at how far apart their lowest and
//! highest are: medians of five rounds, in which all rivals took turns. Network between the two would
//! bring all of them closer together, for then round trips are what counts.
//!
//! The rivals: a hand-written pair of prepared statements on a deadpool of tokio-postgres connections,
//! whose answer is a boolean and nothing else, and [`sqlx::postgres::PgAdvisoryLock`]. Neither
//! looks for a standby, watches its connection, bounds anything, or knows what is nested.
//!
//! # One task
//!
//! | an empty section, nobody else there | per second | beside the rival |
//! |---|---|---|
//! | hand-written | 8,700 | |
//! | `lock`, tokio-postgres | 8,121 | 0.86 (0.76–0.94) |
//! | `with`, tokio-postgres | 8,168 | 0.86 (0.79–1.02) |
//! | `lock`, tokio-postgres, [`Sessions::Shared`](crate::Sessions::Shared) | 6,542 | 0.81 (0.64–1.01) |
//! | `PgAdvisoryLock` | 3,548 | |
//! | `lock`, sqlx | 2,905 | 0.98 (0.82–1.42) |
//! | `with`, sqlx | 2,746 | 0.90 (0.57–1.07) |
//! | `lock`, sqlx, `Sessions::Shared` | 9,611 | 3.31 (1.92–4.37) |
//! | a try that misses, held in this process, tokio-postgres | 2,075,242 | 161 |
//! | a try that misses, held elsewhere, tokio-postgres | 20,666 | 0.76 (0.50–0.85) |
//! | a try that misses, held elsewhere, sqlx | 4,514 | 0.97 (0.54–1.11) |
//!
//! Both send the same statements, one to take and one to give back; what is left is work of the client.
//! Counted in instructions of one cycle on tokio-postgres (they do not depend on what else the machine
//! does):
//!
//! | | by hand | `lock` and `release` |
//! |---|---|---|
//! | driver, protocol, runtime | 16,300 | 17,300 |
//! | memory: allocator, copies | 4,400 | 11,600 |
//! | maps: prepared statements, the table of holders, listeners | 750 | 4,500 |
//! | the line to the session: who may use it, what becomes of a cancelled call | | 5,450 |
//! | statements, rows, what the answer says of the server | | 3,700 |
//! | owners, queue, frames, bounds, clock | 430 | 5,700 |
//! | the rest | 4,300 | 6,500 |
//! | **sum** | 26,200 | 54,900 |
//!
//! That is about 6 µs of processor time. Before, it were 66,300 instructions: maps have a quicker hash, what
//! nearly always is one thing lies in no allocation, nobody is told of what nobody listens for,
//! limits share one clock, and rows are read as they come. To write the driver trait without
//! boxed futures was tried and not kept: it saved one allocation of 45.
//!
//! # Many tasks
//!
//! | 16 tasks, each with a key of its own | connections | per second | beside the rival on the same pool |
//! |---|---|---|---|
//! | hand-written, pool of 16 | 16 | 27,454 | |
//! | `lock`, tokio-postgres, pool of 16 | 16 | 17,344 | 0.78 (0.72–0.81) |
//! | `lock`, tokio-postgres, shared | 1 | 35,768 | 1.36 (1.23–1.38) |
//! | hand-written, pool of 1 | 1 | 10,927 | |
//! | `lock`, tokio-postgres, shared | 1 | 31,218 | 2.86 (2.47–3.37) |
//! | `PgAdvisoryLock`, pool of 16 | 16 | 15,592 | |
//! | `lock`, sqlx, shared | 1 | 25,833 | 1.66 (1.39–1.83) |
//!
//! (The rows of shared sessions are of a second run, each with its rivals in the same one.)
//!
//! The server's work is by the statement, about 25 µs each, of which the lock is one. So what is shared
//! travels as one statement for all who ask at a moment: 16 requests in each, and 0.13 to 0.14 statements
//! for a section. What limits it then is the client, which needs 65,000 instructions for one. With a
//! single thread no task is woken on another one, and the same did 3.4 times the sections of the
//! hand-written pair, by processor time.
//!
//! | 64 tasks, all for one key | connections | per second | beside the rival |
//! |---|---|---|---|
//! | hand-written, pool of 64 | 64 | 5,454 | |
//! | `lock`, tokio-postgres | 1 | 482,510 | 79 (52–132) |
//! | `PgAdvisoryLock`, pool of 64 | 64 | 5,132 | |
//! | `lock`, sqlx | 2 | 356,053 | 73 (55–76) |
//! | with a query on the same pool of 8 inside: hand-written | 8 | stalls | |
//! | `lock`, tokio-postgres | 2 | 23,428 | |
//! | `PgAdvisoryLock` | 8 | stalls | |
//! | `lock`, sqlx | 7 | 6,222 | |
//!
//! They wait for each other without the server, and without a connection ([the local
//! queue](super::design)). The two rivals stall for ever: whoever has the lock needs a connection for the
//! query, and those who wait for the lock have all of them.
//!
//! # Many locks on one connection
//!
//! | | taken, per second | given back, per second |
//! |---|---|---|
//! | 1,000, one by one by hand | 12,617 | 9,302 |
//! | 1,000, [`try_lock_each`](crate::Session::try_lock_each), tokio-postgres | 398,103 | 855,265 |
//! | 1,000, `try_lock_each`, sqlx | 341,601 | 646,646 |
//! | 10,000, `try_lock_each`, tokio-postgres | 426,148 | 763,926 |
//! | 10,000, `try_lock_each`, sqlx | 392,177 | 546,031 |
//!
//! # From one process to another
//!
//! | from the end of a section to the beginning of the next one, elsewhere | p50 | p99 |
//! |---|---|---|
//! | by a plain, blocking `pg_advisory_lock` on both sides | 314 µs | 5.1 ms |
//! | from this library to a plain one | 416 µs | 8.2 ms |
//! | from a plain one to this library | 554 µs | 7.6 ms |
//! | from this library to this library | 583 µs | 5.7 ms |
//!
//! A turn of a wait is a block that can end without an error, and asks what came of it: that is most of
//! the difference, and what it [buys](super::design) is that nothing is left behind and index builds
//! get through.
//!
//! # Fairness
//!
//! Several processes with four tasks each want one key all the time. Turns are in parts of an equal
//! share, the fewest and the most that a process had.
//!
//! | section | processes | | turns per second | turns of a process | p50 wait | longest wait |
//! |---|---|---|---|---|---|---|
//! | empty | 4 | hand-written, blocking | 3,553 | 1.00–1.00 | 1.8 ms | 42 ms |
//! | empty | 4 | tokio-postgres | 421,751 | 0.98–1.02 | 0 ms | 25 ms |
//! | empty | 8 | hand-written, blocking | 2,808 | 0.99–1.01 | 7.6 ms | 58 ms |
//! | empty | 8 | tokio-postgres | 398,548 | 0.97–1.03 | 0 ms | 47 ms |
//! | 10 ms | 4 | hand-written, blocking | 84 | 0.98–1.01 | 178 ms | 191 ms |
//! | 10 ms | 4 | tokio-postgres | 82 | 0.98–1.01 | 182 ms | 197 ms |
//! | 10 ms | 8 | hand-written, blocking | 86 | 0.95–1.08 | 359 ms | 378 ms |
//! | 10 ms | 8 | tokio-postgres | 84 | 0.98–1.01 | 367 ms | 412 ms |
//! | 10 ms | 8 | sqlx | 82 | 0.98–1.02 | 375 ms | 406 ms |
//!
//! This is what was measured, and no promise. A process whose tasks hand the lock to each other does so
//! for a millisecond at most
//! ([`hand_over_within`](crate::Options::hand_over_within)); then it is anybody's.
//!
//! # How it grows
//!
//! | tasks that want one key | connections | per second | p50 of a turn | by hand: connections | per second |
//! |---|---|---|---|---|---|
//! | 1 | 1 | 8,568 | 99 µs | 1 | 10,694 |
//! | 10 | 1 | 684,106 | 8 µs | 10 | 9,259 |
//! | 100 | 1 | 439,130 | 186 µs | 100 | 6,898 |
//! | 1,000 | 1 | 201,749 | 5.4 ms | 100 | 5,672 |
//!
//! | other locks that the process holds | per second, one task | p50 | by hand, per second |
//! |---|---|---|---|
//! | 1 | 9,233 | 97 µs | 10,662 |
//! | 10 | 8,869 | 97 µs | 13,085 |
//! | 100 | 11,246 | 61 µs | 13,089 |
//! | 1,000 | 7,974 | 108 µs | 9,110 |
//! | 10,000 | 7,112 | 106 µs | 11,328 |
//!
//! A wait that times out asks who holds the lock, and the server looks through all locks for that: with
//! 10,000 of them held it takes a few milliseconds.
//!
//! # What to choose
//!
//! - One lock at a time, now and then: the defaults.
//! - Many tasks that want the same few keys: the defaults, too. They queue up locally.
//! - Many tasks with a key each, and short sections: `Sessions::Shared`, if its price is no matter: one
//!   lost connection loses all locks, and deadlocks end by timeout.
//! - Thousands of keys at once: [`Session`](crate::Session), `try_lock_each` and `lock_all`.
//!
//! [`sqlx::postgres::PgAdvisoryLock`]: https://docs.rs/sqlx/latest/sqlx/postgres/struct.PgAdvisoryLock.html
