//! The design, and the reasons for it.
//!
//! For those who want to judge it, or to change it. Numbers were measured on PostgreSQL 15 with
//! default settings, unless it says otherwise; take them as sizes, not as promises.
//!
//! # A lock is a connection
//!
//! PostgreSQL has advisory locks of two kinds. Those of a transaction end with it, which would keep
//! a transaction open for as long as the section takes: minutes, for a migration, with a snapshot
//! or a transaction id that vacuum has to respect. And `CREATE INDEX CONCURRENTLY` cannot run in a
//! transaction at all. So locks here are of the other kind, those of a session, and are held on a
//! connection that is idle and in no transaction.
//!
//! The price is that lock and unlock must come from the same connection. A pool hands out another
//! one each time; then the unlock does nothing, and the lock stays on a connection that somebody
//! else gets. Here an *owner* has one connection from the first statement to the last, and no way
//! leads out of it but two: it is recycled, with nothing on it, or it is closed.
//!
//! # Why drop closes
//!
//! Rust has no asynchronous drop. A future or a guard can be dropped where no runtime is, in the
//! middle of a statement, in a panic. To send an unlock then may need somebody to drive the
//! connection; and a statement that was cancelled may have been executed or not. Closing the
//! connection needs nobody, cannot block, and is understood by the server: it frees everything.
//! About a millisecond later the lock is free. A connection is cheap beside a lock that stays.
//!
//! Only where other locks live on the connection is an unlock sent instead. There every statement
//! belongs to the connection, not to its caller: if the caller goes away, whoever uses the
//! connection next polls the statement to its end first, and unlocks what was granted to nobody. So
//! the cancelled wait for an inner lock never costs the outer one. If nobody comes, a thread of the
//! library does it, the attendant, which is started when it is first needed. Nobody who awaits his
//! calls ever wakes it.
//!
//! # Why tasks queue up before they ask
//!
//! A hundred tasks that want one lock would occupy a hundred connections, of which ninety-nine wait. So
//! those of one manager queue up in memory; the first of them asks the server, and who releases the
//! lock passes it on, with the connection it is on. Only whoever holds nothing may queue up here:
//! nobody waits for him, so no deadlock can hide in the queue, and the server still sees all others.
//!
//! It is the server that decides between processes, so the lock goes back to it a millisecond after it
//! was granted, and the next task of the queue has to ask. A queue in memory has a weakness that the
//! server's has not: one who stands in it may never be polled again. He is passed over. A look every
//! second wakes whoever has the lead and does nothing with it, and takes it from him a second later.
//! And a holder whose connection has been silent for long is not relied on; then the next one asks the
//! server.
//!
//! What is asked of one connection at the same moment travels together: an unlock and a try of other
//! tasks are one statement. The server's cost is that of the statement; the lock itself is a small part
//! of it. [`Sessions::Shared`](crate::Sessions::Shared) is built on that. A session re-enters its own
//! locks, so what keeps its users apart is a table in memory; the server keeps processes apart.
//!
//! # Why waiting goes by slices
//!
//! The plain way to wait is `SELECT pg_advisory_lock(…)`. It has five faults:
//!
//! - With a timeout it can end in an error and **hold the lock all the same**, if the grant and the
//!   timeout race: 702 of 20,275 waits that timed out.
//! - A waiting statement holds a snapshot. A `CREATE INDEX CONCURRENTLY` elsewhere waits for it,
//!   and so does the cleaning up of vacuum.
//! - A `statement_timeout` or `lock_timeout` of the role ends it.
//! - A wait whose client has gone stays in the queue until it is granted.
//! - Every timeout is an error in the server's log.
//!
//! The other plain way is to poll `pg_try_advisory_lock`. It has none of these faults, but hands
//! over as slowly as it polls, and a poller is in no queue, so that the server cannot see a
//! deadlock.
//!
//! A slice is a short wait, about 0.3 to 0.4 s, again and again. Within it the waiter stands in the
//! server's queue, so a lock that is released is handed over in about a millisecond. Between two of
//! them it holds no snapshot, index builds pass, and an abandoned wait has an end. Slices are
//! jittered, so that waiters which came together do not leave the queue together.
//!
//! Two kinds of waiters get longer slices:
//!
//! - The server looks for a cycle once a wait has lasted for `deadlock_timeout`, so slices below it
//!   would hide every deadlock. Every cycle through an owner contains somebody who waits for one of
//!   its locks. So an owner that holds locks, and has waited for longer than that, asks whether there
//!   is such a one; if so, its slice is 1.5 × `deadlock_timeout`. Not while somebody else wants its
//!   connection: a release must not wait for that long.
//! - Each slice's end lets in the readers that are queued behind a writer, so a writer behind
//!   overlapping readers would never get its turn. Its slices double, up to 30 s, until it outlasts
//!   the readers that are there.
//!
//! An index build can be in a cycle with a waiter: the holder of the lock waits for the build, and
//! the build for the waiter's snapshot. A short slice is over before the server looks, and nobody
//! waits for the waiter's own locks, so it gets no long one. Where it does, and is looked at first, it
//! sees in the server's report that an index build is part of the cycle, and just waits on. Only the
//! grown slices of a writer behind readers can stand in a build's way for longer.
//!
//! # Why one DO block
//!
//! A slice is one message of the simple protocol: settings, a `DO` block, and a `SHOW` of its
//! outcome. One message is one implicit transaction, and one round trip.
//!
//! - The block catches the timeout, so nothing is logged as an error, and a transaction around it,
//!   if there were one, would survive.
//! - In the handler it settles the race above: it tries once more; if that hits, it unlocks once
//!   and looks whether the session still has the lock. If so, the raced grant was real. In 51,511
//!   timeouts there were 1,147 raced grants, and each was found. A look at `pg_locks` every time
//!   would cost 6 ms with 10,000 locks held; this way it is needed only after a race.
//! - Whatever the server does after a grant is time in which the lock is held and nobody works under it.
//!   So the settings say beforehand that it was granted, and the handlers take that back; after a
//!   grant the block has nothing to do.
//! - The key and the length are passed as settings of the transaction, so the block's text never
//!   changes, and `pg_stat_statements` counts it as one statement.
//!
//! A role that may not use `plpgsql` gets the plain statement, with the same questions asked from
//! outside.
//!
//! # Why the section's own task watches
//!
//! A lock that is lost is free for others, and as long as its section runs on, two of them may be at
//! work. So the section's future is polled beside a watch, and dropped when that sees the loss. The
//! watch needs no task of its own, hence no runtime, and it ends with the section.
//!
//! Every half second it looks at what the driver knows, which costs nothing. A driver that reads all
//! the time knows of a closed connection within milliseconds. One that reads only when it is asked
//! something has to be asked: by an empty statement, for which the server begins no transaction and
//! takes no snapshot. A network that went silent shows in no other way, so the first kind is asked as
//! well, but only when nothing was heard for long. Short sections, nearly all there are, are over
//! before the first look.
//!
//! # Where a fencing token comes from
//!
//! A token has to grow from holder to holder, whatever happens to the server in between. A sequence
//! would have to be installed. A transaction id can be given out again after a crash, if nothing of its
//! transaction had reached the disk. So a token is a place in the server's write-ahead log: an empty
//! message is written there after the lock was granted, and flushed before its place is handed out. The
//! next holder's message stands behind it, also after a crash, for the log goes on where it ends. The
//! flush is the dearest thing in a lock's life, so a token is given only to those who ask.
//!
//! # What is never changed on your connection
//!
//! A connection of your own pool comes back as it was: in no transaction, with no lock, and with
//! every setting as before, with one exception: the TCP settings that bound how long a vanished
//! host keeps its locks stay (`PostgresOptions::dead_host_within`), with a mark that says so. What a
//! wait changes (`lock_timeout`, `statement_timeout`, `transaction_timeout` on 17 and newer), and a
//! fencing token (`synchronous_commit`), is changed for that transaction only. An
//! `idle_session_timeout` is put back. What stays is harmless: prepared statements, and the names of a
//! few settings that begin with `advisory.`.
//!
//! All names in the statements are qualified with `pg_catalog`, so that no `search_path` can put
//! another function in their place.
//!
//! # Why the session is the owner
//!
//! A section's nested calls use its connection. That is thrifty, but the reason is deadlocks: the
//! server finds a cycle among connections only if each owner is *one* connection. If an inner lock
//! had a connection of its own, the server would see two owners that do not wait for each other.
//!
//! It also makes entering again natural, since a session is granted what it has. But the server
//! would then grant everything to every part of the section, shared and exclusive at once. So the
//! library decides what the parts of one owner may do to each other: by ancestry, because whoever
//! encloses you waits for you anyway. See [`deadlocks`](super::deadlocks).
//!
//! # Why a context is a future that swaps a thread-local
//!
//! Nested calls have to find their section's connection. Passing it as an argument would put the
//! lock into the signature of everything in between; the task-locals of a runtime would tie the
//! library to that runtime. So the future of a section puts its context into a thread-local before
//! it polls, and takes it out afterwards, also in a panic. That works on every executor, costs no
//! allocation per poll, and makes what is spawned a stranger, which it is: it may outlive the
//! section.
//!
//! # Why the answer carries more than a boolean
//!
//! The statement that takes a lock also returns the server process and whether the server is a
//! standby. A pooler that changes the connection underneath is noticed when the process changes,
//! and a primary that became a standby is noticed when it answers. That costs no round trip;
//! a check of its own would cost one for each lock.
//!
//! # Why the first lock opens a second connection
//!
//! A pooler in transaction mode has no reason to move a client while nobody else wants the server's
//! session, so a single connection sees nothing wrong, and two programs find out in production. A
//! second connection takes a session for a transaction, twice, and each time the first is asked
//! again which process serves it: the pooler has to give it another, or to let it wait. It is also
//! the one to try a lock that the first one has: several primaries behind one address all grant it.
//! And it is the one to go and leave a lock behind: a lock has to end with its connection, and a pooler
//! that does not clean its sessions has the next client own it.
//!
//! # Why pinned mode lets go between two turns
//!
//! `CREATE INDEX CONCURRENTLY` waits for whole transactions that had a snapshot when it looked, and a
//! waiting statement has one. So whoever waits in pinned mode and holds nothing ends the transaction
//! after each turn. Whoever holds something cannot, and holds up an index build that begins
//! meanwhile until it has let go.
//!
//! # Why keys are hashes of a documented kind
//!
//! Names become 64-bit keys by SHA-256 ([`derive_key`](crate::derive_key)), which any language has,
//! not by the server's `hashtext`, which is 32 bits wide, so that names collide in practice
//! (`tenant:59552` and `tenant:99827` do), and not part of its documented interface.
//!
//! # Why the core knows no driver and no runtime
//!
//! What two drivers have in common is written once, over two small traits. A library that
//! locks depends on the core alone. Time comes from a timer thread (`futures-timer`), what was left
//! behind is finished by the attendant's; no task is spawned.
