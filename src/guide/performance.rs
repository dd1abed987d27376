//! What locks cost in time, beside what one would use without this library, and how that grows.
//!
//! `cargo bench --bench locks` makes all tables of this page but the last, on a throw-away server:
//! PostgreSQL 15 over TCP on the same host, which had two cores. Rivals take turns in each of five rounds;
//! figures are medians, and ratios have their lowest and highest beside them. Network between the two
//! would bring all rivals closer together, for then round trips are what counts.
//!
//! On two cores and several threads much is chance: whether a task and the task of its connection meet on
//! one thread, and a client and its server process on one core, makes a factor of two, for whole rounds
//! and for whichever rival. So there are two columns of ratios. *Two cores* is as it comes. For *one
//! core* everything, the server included, has one core and one thread,
//!
//! ```text
//! ADVISORY_BENCH_THREADS=1 taskset -c 1 cargo bench --bench locks
//! ```
//!
//! so that nothing waits to be woken elsewhere, and what counts is work. It varies by a few percent.
//!
//! The rivals: a hand-written pair of prepared statements on a deadpool of tokio-postgres connections,
//! whose answer is a boolean and nothing else, and [`sqlx::postgres::PgAdvisoryLock`]. Neither
//! looks for a standby, watches its connection, bounds anything, or knows what is nested.
//!
//! # One task
//!
//! | an empty section, nobody else there | one core: per second | beside the rival | two cores |
//! |---|---|---|---|
//! | hand-written | 20,530 | | |
//! | `lock`, tokio-postgres | 16,033 | 0.76 (0.74–0.79) | 0.94 (0.82–1.09) |
//! | `lock`, tokio-postgres, [`Sessions::Shared`](crate::Sessions::Shared) | 15,090 | 0.74 (0.70–0.75) | 0.89 (0.81–1.05) |
//! | `PgAdvisoryLock` | 10,315 | | |
//! | `lock`, sqlx | 8,651 | 0.85 (0.82–0.86) | 0.83 (0.81–0.90) |
//! | `lock`, sqlx, `Sessions::Shared` | 15,468 | 1.50 (1.46–1.57) | 1.45 (1.30–1.81) |
//! | a try that misses, held in this process, tokio-postgres | 3,043,586 | 77 | 86 |
//! | a try that misses, held elsewhere: hand-written | 40,798 | | |
//! | `try_lock`, tokio-postgres | 31,346 | 0.77 (0.74–0.78) | 0.88 (0.84–0.99) |
//! | a try that misses, held elsewhere: `PgAdvisoryLock` | 14,620 | | |
//! | `try_lock`, sqlx | 12,787 | 0.87 (0.86–0.87) | 0.89 (0.87–0.97) |
//!
//! `with` costs what `lock` does. A try that misses here asks nobody while the holder's session has been
//! heard of lately ([`silence_seen_within`](crate::Options::silence_seen_within)); after that it asks the
//! server, as in one round of the five.
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
//! On one core that is 8 of the 11 µs that a cycle takes longer at p50. The other 3 are spent outside of
//! the client, and not on the three columns more in the answer: without them the server needs the same
//! time, by a microsecond; it may be the caches that both have to share. Before, it were 66,300 instructions: maps have a quicker hash, what
//! nearly always is one thing lies in no allocation, nobody is told of what nobody listens for,
//! limits share one clock, rows are read as they come, and a statement that is under way is polled when
//! it has rung. What sqlx returns for a checkout is a future of eight kilobytes; since it is allocated
//! once, a cycle there is 75,300 instructions instead of 162,300 (`PgAdvisoryLock`: 38,700).
//!
//! Tried and not kept: to write the driver trait without boxed futures (it saved one allocation of 45);
//! to allocate the preparing of a statement apart (1,500 instructions more); link-time optimization (no
//! difference beyond the noise). What is left is spread over many small things, of which none is a tenth.
//!
//! # Many tasks
//!
//! | 16 tasks, each with a key of its own | connections | one core: per second | beside the rival on 16 | two cores |
//! |---|---|---|---|---|
//! | hand-written | 16 | 18,025 | | |
//! | `lock`, tokio-postgres | 16 | 14,817 | 0.83 (0.82–0.84) | 0.74 (0.65–0.79) |
//! | `lock`, tokio-postgres, shared | 1 | 79,075 | 4.37 (4.25–4.47) | 1.26 (1.22–1.28) |
//! | `PgAdvisoryLock` | 16 | 9,822 | | |
//! | `lock`, sqlx | 16 | 7,991 | 0.84 (0.79–0.86) | 0.85 (0.82–0.87) |
//! | `lock`, sqlx, shared | 1 | 81,257 | 8.20 (7.91–8.43) | 1.94 (1.76–2.02) |
//!
//! Where the pool has one connection the shared session is 3.8 and 7.8 times as fast on one core, and
//! 4.1 and 5.9 times on two.
//!
//! The server's work is by the statement, about 25 µs each, of which the lock is one. So what is shared
//! travels as one statement for all who ask at a moment: 16 requests in each, and 0.13 to 0.14 statements
//! for a section. On one core that is all there is to it: 9 µs for a section in the client, and 4 outside
//! of it. On two cores the rival's 16 connections keep both busy, and the shared session does not: by
//! its nature the client works, then the server, then the client. Two statements for each 16 sections
//! leave the client idle for half of the time, about 100 µs for each, of which the server works 30. And
//! with several threads the client needs 26 µs for a section instead of 13 with one: each answer wakes
//! 16 tasks, on whichever thread. The raw protocol on one connection, pipelined and without any pool, gets
//! 1.4 times the rival's rate there, and 2.1 times with one thread on two cores, where the ratios of
//! shared sessions are 1.9 (1.7–2.2) and, sqlx, 3.8 (3.6–4.3).
//!
//! Tried and not kept: to send a statement when half of those who were answered have come, so that client
//! and server work at the same time (0.98 on one thread, where full batches had 1.9: twice the statements,
//! and each woke somebody); to answer with one row that has an array instead of a row for each request
//! (no difference).
//!
//! | 64 tasks, all for one key | connections | per second | beside the rival |
//! |---|---|---|---|
//! | hand-written, pool of 64 | 64 | 6,843 | |
//! | `lock`, tokio-postgres | 1 | 572,006 | 82 (78–90) |
//! | `PgAdvisoryLock`, pool of 64 | 64 | 5,403 | |
//! | `lock`, sqlx | 1 | 580,212 | 108 (91–114) |
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
//! | from the end of a section to the beginning of the next one, elsewhere: p50 | one core | two cores |
//! |---|---|---|
//! | by a plain, blocking `pg_advisory_lock` on both sides | 229 µs | 312 µs |
//! | from this library to a plain one | 208 µs | 384 µs |
//! | from a plain one to this library | 258 µs | 423 µs |
//! | from this library to this library | 323 µs | 471 µs |
//! | by `PgAdvisoryLock` on both sides | 194 µs | 347 µs |
//! | from this library to this library, sqlx | 302 µs | 453 µs |
//!
//! Two processes that hand a lock to each other were two tasks with a pool each. Another run on one core
//! had 325 beside 284 µs. A turn of a wait is a block that can end without an error: when the lock is
//! granted the block ends, its outcome is shown, and the transaction ends. On cold caches, after a wait,
//! that is 30 to 110 µs, and what it [buys](super::design) is that nothing is left behind and index
//! builds get through. Before, it was 583 beside 314 µs on two cores: the block noted the grant in a
//! setting, and a query asked for it. Now a setting says so before the wait, and is taken back if it is
//! not true.
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
