//! Every statement that is sent, and nothing else.
//!
//! All names are qualified with `pg_catalog`, functions, types, tables and operators alike, so
//! that nothing a `search_path` leads to can take their place. The lock functions stand in lists of
//! columns only: in a WHERE they would lock rows that are not returned.

use super::tag::LockTag;
use crate::{LockKey, LockMode, spi::Claim};

/// Which server this is; understood by everything that speaks PostgreSQL's protocol.
///
/// Columns: its name and version.
pub(super) const VERSION: &str = "SELECT pg_catalog.version()";

/// What is to be known of the server before it is used.
///
/// Columns: version number, standby?, `deadlock_timeout` in ms, may use `plpgsql`?, is
/// `idle_session_timeout` on?, when it was started, in microseconds.
pub(super) const FACTS: &str = "\
SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4,
       pg_catalog.pg_is_in_recovery(),
       (SELECT s.setting::pg_catalog.int8
          FROM pg_catalog.pg_settings AS s
         WHERE s.name OPERATOR(pg_catalog.=) 'deadlock_timeout'),
       EXISTS (SELECT
                 FROM pg_catalog.pg_language AS l
                WHERE l.lanname OPERATOR(pg_catalog.=) 'plpgsql'
                  AND pg_catalog.has_language_privilege(l.oid, 'USAGE')),
       COALESCE(pg_catalog.current_setting('idle_session_timeout', true), '0')
         OPERATOR(pg_catalog.<>) '0',
       (pg_catalog.date_part('epoch', pg_catalog.pg_postmaster_start_time())
         OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8";

/// What is worth knowing of the server besides.
///
/// Columns: version number, standby?, may use `plpgsql`?, `fsync`?, `deadlock_timeout` in ms,
/// connections of clients, `max_connections`, how many of those are reserved for other roles,
/// advisory locks that are held, how many locks of all kinds there is room for.
///
/// Of the sessions of other roles most are shown neither a kind nor anything else but a database and
/// a role; background workers of theirs are counted, too. They come from the same function as those of
/// [`HOLDERS`].
pub(super) const CHECKUP: &str = "\
SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4,
       pg_catalog.pg_is_in_recovery(),
       EXISTS (SELECT
                 FROM pg_catalog.pg_language AS l
                WHERE l.lanname OPERATOR(pg_catalog.=) 'plpgsql'
                  AND pg_catalog.has_language_privilege(l.oid, 'USAGE')),
       pg_catalog.current_setting('fsync')::pg_catalog.bool,
       (SELECT s.setting::pg_catalog.int8
          FROM pg_catalog.pg_settings AS s
         WHERE s.name OPERATOR(pg_catalog.=) 'deadlock_timeout'),
       (SELECT pg_catalog.count(*)
          FROM pg_catalog.pg_stat_get_activity(NULL) AS a
         WHERE a.datid IS NOT NULL
           AND a.usesysid IS NOT NULL
           AND COALESCE(a.backend_type, 'client backend')
                 OPERATOR(pg_catalog.=) 'client backend'),
       pg_catalog.current_setting('max_connections')::pg_catalog.int8,
       pg_catalog.current_setting('superuser_reserved_connections')::pg_catalog.int8
         OPERATOR(pg_catalog.+)
         COALESCE(pg_catalog.current_setting('reserved_connections', true), '0')::pg_catalog.int8,
       (SELECT pg_catalog.count(*)
          FROM pg_catalog.pg_locks AS l
         WHERE l.locktype OPERATOR(pg_catalog.=) 'advisory'
           AND l.granted),
       pg_catalog.current_setting('max_locks_per_transaction')::pg_catalog.int8
         OPERATOR(pg_catalog.*)
         (pg_catalog.current_setting('max_connections')::pg_catalog.int8
           OPERATOR(pg_catalog.+)
           pg_catalog.current_setting('max_prepared_transactions')::pg_catalog.int8)";

/// The timeouts that are on for this role, but for the ones for deadlocks and for logins.
///
/// Columns: name, ms.
pub(super) const TIMEOUTS: &str = "\
SELECT s.name,
       s.setting::pg_catalog.int8
  FROM pg_catalog.pg_settings AS s
 WHERE s.name OPERATOR(pg_catalog.=) ANY (ARRAY[
         'idle_in_transaction_session_timeout',
         'idle_session_timeout',
         'lock_timeout',
         'statement_timeout',
         'transaction_timeout'
       ])
   AND s.setting OPERATOR(pg_catalog.<>) '0'
 ORDER BY s.name";

/// The advisory locks of the asking session.
///
/// Columns: `classid`, `objid`, `objsubid`, mode.
pub(super) const HELD: &str = "\
SELECT l.classid::pg_catalog.int4,
       l.objid::pg_catalog.int4,
       l.objsubid::pg_catalog.int4,
       l.mode::pg_catalog.text
  FROM pg_catalog.pg_locks AS l
 WHERE l.locktype OPERATOR(pg_catalog.=) 'advisory'
   AND l.pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()
   AND l.granted";

/// Whether anybody waits for an advisory lock of the asking session.
///
/// Columns: that, `deadlock_timeout` in ms.
pub(super) const AWAITED: &str = "\
SELECT EXISTS (
  SELECT
    FROM pg_catalog.pg_locks AS held
    JOIN pg_catalog.pg_locks AS wanted
      ON wanted.locktype OPERATOR(pg_catalog.=) held.locktype
     AND wanted.database OPERATOR(pg_catalog.=) held.database
     AND wanted.classid OPERATOR(pg_catalog.=) held.classid
     AND wanted.objid OPERATOR(pg_catalog.=) held.objid
     AND wanted.objsubid OPERATOR(pg_catalog.=) held.objsubid
   WHERE held.locktype OPERATOR(pg_catalog.=) 'advisory'
     AND held.pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()
     AND held.granted
     AND NOT wanted.granted
),
       (SELECT s.setting::pg_catalog.int8
          FROM pg_catalog.pg_settings AS s
         WHERE s.name OPERATOR(pg_catalog.=) 'deadlock_timeout')";

/// The holders of a lock in the asking session's database: `$1` is its `classid`, `$2` its
/// `objid`, `$3` its `objsubid`. A prepared transaction has no process id; it shows as 0.
///
/// Columns: pid, mode, application name, state, since when in microseconds, client address.
///
/// The function underneath `pg_stat_activity` is open to all where the view is not.
pub(super) const HOLDERS: &str = "\
SELECT COALESCE(l.pid, 0)::pg_catalog.int4,
       l.mode::pg_catalog.text,
       a.application_name::pg_catalog.text,
       a.state::pg_catalog.text,
       (pg_catalog.date_part('epoch', a.state_change)
         OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8,
       pg_catalog.host(a.client_addr)
  FROM pg_catalog.pg_locks AS l
  JOIN pg_catalog.pg_database AS d
    ON d.oid OPERATOR(pg_catalog.=) l.database
  LEFT JOIN pg_catalog.pg_stat_get_activity(l.pid) AS a
    ON a.pid OPERATOR(pg_catalog.=) l.pid
 WHERE l.locktype OPERATOR(pg_catalog.=) 'advisory'
   AND d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
   AND l.classid OPERATOR(pg_catalog.=) $1::pg_catalog.int4::pg_catalog.oid
   AND l.objid OPERATOR(pg_catalog.=) $2::pg_catalog.int4::pg_catalog.oid
   AND l.objsubid::pg_catalog.int4 OPERATOR(pg_catalog.=) $3::pg_catalog.int4
   AND l.granted";

/// Switches `idle_session_timeout` off.
///
/// Columns: what it was, in ms, and what it is.
pub(super) const IDLE_OFF: &str = "\
SELECT (SELECT s.setting::pg_catalog.int8
          FROM pg_catalog.pg_settings AS s
         WHERE s.name OPERATOR(pg_catalog.=) 'idle_session_timeout'),
       pg_catalog.set_config('idle_session_timeout', '0', false)";

/// Takes a place in the server's write-ahead log, behind everything that was written before, and
/// waits until it is on disk, and with the standbys that have to confirm it: what a crash forgets
/// could be given out again. In one message, so in one transaction.
///
/// Columns, in its last row: the place.
pub(super) const FENCING_TOKEN: &str = "\
SELECT pg_catalog.set_config('synchronous_commit', 'on', true);
SELECT (pg_catalog.pg_logical_emit_message(true, 'advisory', ''::pg_catalog.text)
         OPERATOR(pg_catalog.-) '0/0'::pg_catalog.pg_lsn)::pg_catalog.int8";

/// As [`FENCING_TOKEN`], for a transaction that goes on: takes the place at once, but does not wait.
pub(super) const PLACE: &str = "\
SELECT (pg_catalog.pg_logical_emit_message(false, 'advisory', ''::pg_catalog.text)
         OPERATOR(pg_catalog.-) '0/0'::pg_catalog.pg_lsn)::pg_catalog.int8";

/// As [`PLACE`], and waits until it is on disk, but for no standby. PostgreSQL 17 and newer.
///
/// Columns: the place, and whether standbys have to confirm what is committed.
pub(super) const PLACE_ON_DISK: &str = "\
SELECT (pg_catalog.pg_logical_emit_message(false, 'advisory', ''::pg_catalog.text, true)
         OPERATOR(pg_catalog.-) '0/0'::pg_catalog.pg_lsn)::pg_catalog.int8,
       pg_catalog.current_setting('synchronous_standby_names') OPERATOR(pg_catalog.<>) ''";

/// Begins the batch of a wait: says beforehand that it will be granted, which its block takes back if
/// it is not. What comes after a grant is time in which the lock is held and nobody knows.
///
/// The settings of the wait are to follow, as further columns. Columns: pid, and those.
pub(super) const PRESUMED: &str =
    "SELECT pg_catalog.pg_backend_pid(), pg_catalog.set_config('advisory.wait', 'granted', true)";

/// Ends the batch of a wait. No query is planned for it.
///
/// Column: how the wait ended, and after a colon the detail of a deadlock.
pub(super) const OUTCOME: &str = "SHOW advisory.wait";

/// Ends the transaction of a session that is kept by one.
pub(super) const COMMIT: &str = "COMMIT";

/// Which server process this is.
pub(super) const PID: &str = "SELECT pg_catalog.pg_backend_pid()";

/// Leaves a mark on the session, a setting that PostgreSQL does not know.
///
/// Columns: the process that it is left on.
pub(super) const MARK: &str = "\
SELECT pg_catalog.set_config('advisory.mark', 'left', false);
SELECT pg_catalog.pg_backend_pid()";

/// Column: the mark, if it is still there.
pub(super) const MARKED: &str = "SELECT pg_catalog.current_setting('advisory.mark', true)";

/// What a mark says.
pub(super) const MARK_VALUE: &str = "left";

/// Takes a lock, to see whether another connection is kept out. `key` is not negative.
///
/// It begins in another way than the statements of all other locks, for tests that look for those.
///
/// Column: whether it was free.
pub(super) fn trial_lock(key: i64) -> String {
    format!("VALUES (pg_catalog.pg_try_advisory_lock({key}))")
}

/// Gives it back.
///
/// Column: whether it was held.
pub(super) fn trial_unlock(key: i64) -> String {
    format!("VALUES (pg_catalog.pg_advisory_unlock({key}))")
}

/// Whether anybody holds it.
///
/// Column: that.
pub(super) fn trial_held(key: i64) -> String {
    let LockTag {
        class,
        object,
        subid,
    } = LockKey::BigInt(key).into();
    format!(
        "\
VALUES (EXISTS (
  SELECT
    FROM pg_catalog.pg_locks AS l
    JOIN pg_catalog.pg_database AS d
      ON d.oid OPERATOR(pg_catalog.=) l.database
   WHERE l.locktype OPERATOR(pg_catalog.=) 'advisory'
     AND d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
     AND l.classid OPERATOR(pg_catalog.=) '{class}'::pg_catalog.int4::pg_catalog.oid
     AND l.objid OPERATOR(pg_catalog.=) '{object}'::pg_catalog.int4::pg_catalog.oid
     AND l.objsubid::pg_catalog.int4 OPERATOR(pg_catalog.=) {subid}
     AND l.granted
))"
    )
}

/// The statements for the keys of one key space, in one mode.
#[derive(Debug)]
pub(super) struct Statements {
    /// Parameters: the key. Columns: granted?, pid, standby?, the mark of a connection that has
    /// its bound for dead hosts.
    pub(super) try_lock: &'static str,
    /// As `try_lock`, for many keys; one row for each, in their order. Parameters: an array of
    /// keys, or of first and one of second numbers.
    pub(super) try_lock_each: &'static str,
    /// Parameters: the key. Columns: was held?, pid.
    pub(super) unlock: &'static str,
    /// As `unlock`, for many keys.
    pub(super) unlock_each: &'static str,
    /// First `unlock_each` and then `try_lock_each`, with rows of the latter's columns. For the keys
    /// of a `bigint` only.
    pub(super) exchange: Option<&'static str>,
    /// Waits for the key that `advisory.key`, or `advisory.class` and `advisory.object`, name in its
    /// transaction, for `advisory.slice` ms, after [`PRESUMED`]; if it was not granted, it says so in
    /// `advisory.wait`. The text is the same for all keys, so that it makes one entry in `pg_stat_statements`.
    pub(super) wait: &'static str,
    /// The function that waits, for servers without `plpgsql`.
    pub(super) lock_function: &'static str,
}

impl Statements {
    pub(super) fn of(claim: Claim) -> &'static Self {
        match (claim.key, claim.mode) {
            (LockKey::BigInt(_), LockMode::Exclusive) => &BIGINT_EXCLUSIVE,
            (LockKey::BigInt(_), LockMode::Shared) => &BIGINT_SHARED,
            (LockKey::Pair(..), LockMode::Exclusive) => &PAIR_EXCLUSIVE,
            (LockKey::Pair(..), LockMode::Shared) => &PAIR_SHARED,
        }
    }
}

/// Waits for a key for one slice, in the transaction whose settings name both.
///
/// A slice ends with `lock_not_available`. A grant may have raced it; then the session has the
/// lock all the same, and the handler has to find out, at a cost that does not grow with the
/// number of locks that are held. So it tries once more. A miss means that there was no grant. A
/// hit is undone, and only then does it pay to look at `pg_locks`: what is still there was granted
/// by the race.
///
/// After a miss `$readers` tries the shared mode: if that is free, only readers stand in the way.
///
/// Nothing is done after a grant, and before the wait nothing that only the handler needs.
macro_rules! wait {
    ($suffix:literal, $declare:literal, $key:literal, $subid:literal, $mode:literal, $readers:expr) => {
        concat!(
            "\
DO $advisory$
DECLARE
", $declare, "\
  detail pg_catalog.text;
BEGIN
  PERFORM pg_catalog.set_config('lock_timeout', pg_catalog.current_setting('advisory.slice'), true);
  PERFORM pg_catalog.pg_advisory_lock", $suffix, "(", $key, ");
EXCEPTION
  WHEN lock_not_available THEN
    PERFORM pg_catalog.set_config('advisory.wait', 'timeout', true);
    IF pg_catalog.pg_try_advisory_lock", $suffix, "(", $key, ") THEN
      PERFORM pg_catalog.pg_advisory_unlock", $suffix, "(", $key, ");
      IF EXISTS (
        SELECT
          FROM pg_catalog.pg_locks AS l
          JOIN pg_catalog.pg_database AS d
            ON d.oid OPERATOR(pg_catalog.=) l.database
         WHERE l.locktype OPERATOR(pg_catalog.=) 'advisory'
           AND d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
           AND l.classid OPERATOR(pg_catalog.=)
                 pg_catalog.current_setting('advisory.class')::pg_catalog.int4::pg_catalog.oid
           AND l.objid OPERATOR(pg_catalog.=)
                 pg_catalog.current_setting('advisory.object')::pg_catalog.int4::pg_catalog.oid
           AND l.objsubid OPERATOR(pg_catalog.=) ", $subid, "::pg_catalog.int2
           AND l.pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()
           AND l.mode OPERATOR(pg_catalog.=) '", $mode, "'
           AND l.granted
      ) THEN
        PERFORM pg_catalog.set_config('advisory.wait', 'granted', true);
      END IF;
", $readers, "\
    END IF;
  WHEN deadlock_detected THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    PERFORM pg_catalog.set_config(
      'advisory.wait', pg_catalog.concat('deadlock:', detail), true);
END $advisory$"
        )
    };
}

/// The statements of a mode (`$suffix` is what its functions' names end with, `$mode` its name in
/// `pg_locks`) for the keys of a key space, given as `$param` alone, as `$each` of many `$from` an
/// array, and inside the block as `$key`.
macro_rules! statements {
    (
        mode: $suffix:literal $mode:literal,
        one: $param:literal,
        many: $each:literal from $from:literal,
        block: $declare:literal $key:literal $subid:literal,
        exchange: $exchange:expr,
        readers: $readers:expr $(,)?
    ) => {
        Statements {
            try_lock: concat!(
                "SELECT pg_catalog.pg_try_advisory_lock",
                $suffix,
                "(",
                $param,
                "),
       pg_catalog.pg_backend_pid(),
       pg_catalog.pg_is_in_recovery(),
       pg_catalog.current_setting('advisory.dead_host_within', true)"
            ),
            try_lock_each: concat!(
                "SELECT pg_catalog.pg_try_advisory_lock",
                $suffix,
                "(",
                $each,
                "),
       pg_catalog.pg_backend_pid(),
       pg_catalog.pg_is_in_recovery(),
       pg_catalog.current_setting('advisory.dead_host_within', true)
  FROM ",
                $from
            ),
            unlock: concat!(
                "SELECT pg_catalog.pg_advisory_unlock",
                $suffix,
                "(",
                $param,
                "),
       pg_catalog.pg_backend_pid()"
            ),
            unlock_each: concat!(
                "SELECT pg_catalog.pg_advisory_unlock",
                $suffix,
                "(",
                $each,
                "),
       pg_catalog.pg_backend_pid()
  FROM ",
                $from
            ),
            exchange: $exchange,
            wait: wait!($suffix, $declare, $key, $subid, $mode, $readers),
            lock_function: concat!("pg_catalog.pg_advisory_lock", $suffix),
        }
    };
}

/// An `Append` runs its parts in their order, and none of these functions may run in parallel.
macro_rules! exchange {
    ($suffix:literal) => {
        concat!(
            "SELECT pg_catalog.pg_advisory_unlock",
            $suffix,
            "(k),
       pg_catalog.pg_backend_pid(),
       NULL::pg_catalog.bool,
       NULL::pg_catalog.text
  FROM pg_catalog.unnest($1::pg_catalog.int8[]) AS k
 UNION ALL
SELECT pg_catalog.pg_try_advisory_lock",
            $suffix,
            "(k),
       pg_catalog.pg_backend_pid(),
       pg_catalog.pg_is_in_recovery(),
       pg_catalog.current_setting('advisory.dead_host_within', true)
  FROM pg_catalog.unnest($2::pg_catalog.int8[]) AS k"
        )
    };
}

macro_rules! bigint {
    ($suffix:literal $mode:literal, readers: $readers:expr) => {
        statements! {
            mode: $suffix $mode,
            one: "$1::pg_catalog.int8",
            many: "k" from "pg_catalog.unnest($1::pg_catalog.int8[]) AS k",
            block: "  \
  key pg_catalog.int8 := pg_catalog.current_setting('advisory.key')::pg_catalog.int8;
" "key" "1",
            exchange: Some(exchange!($suffix)),
            readers: $readers,
        }
    };
}

macro_rules! pair {
    ($suffix:literal $mode:literal, readers: $readers:expr) => {
        statements! {
            mode: $suffix $mode,
            one: "$1::pg_catalog.int4, $2::pg_catalog.int4",
            many: "k.class::pg_catalog.int4, k.object::pg_catalog.int4" from "ROWS FROM (
         pg_catalog.unnest($1::pg_catalog.int8[]),
         pg_catalog.unnest($2::pg_catalog.int8[])
       ) AS k (class, object)",
            block: "  \
  class pg_catalog.int4 := pg_catalog.current_setting('advisory.class')::pg_catalog.int4;
  object pg_catalog.int4 := pg_catalog.current_setting('advisory.object')::pg_catalog.int4;
" "class, object" "2",
            exchange: None,
            readers: $readers,
        }
    };
}

/// For writers: whether only readers stand in the way of the key.
macro_rules! try_shared {
    ($key:literal) => {
        concat!(
            "    ELSIF pg_catalog.pg_try_advisory_lock_shared(",
            $key,
            ") THEN
      PERFORM pg_catalog.pg_advisory_unlock_shared(",
            $key,
            ");
      PERFORM pg_catalog.set_config('advisory.wait', 'readers', true);
"
        )
    };
}

static BIGINT_EXCLUSIVE: Statements = bigint!("" "ExclusiveLock", readers: try_shared!("key"));
static BIGINT_SHARED: Statements = bigint!("_shared" "ShareLock", readers: "");
static PAIR_EXCLUSIVE: Statements =
    pair!("" "ExclusiveLock", readers: try_shared!("class, object"));
static PAIR_SHARED: Statements = pair!("_shared" "ShareLock", readers: "");
