use std::time::Duration;

use futures::future::BoxFuture;

use super::{Connection, DriverError, Row, Value, driver::answer, statements};
use crate::{Result, limit::in_time};

/// How long the server may take to commit beside, a connection for it included: less than it may take
/// to answer, after which a session counts as lost.
const COMMITTED_WITHIN: Duration = Duration::from_secs(3);

/// Takes a place in the log by a transaction of somebody else's, and returns when that has ended.
pub(super) type Commit = Box<dyn Fn() -> BoxFuture<'static, Result<i64>> + Send + Sync>;

/// How a fencing token that is taken inside a transaction which goes on comes to be where a crash
/// does not forget it before it is handed out: what is forgotten could be given out again.
///
/// The end of another transaction that comes after it sees to that, as far as the server's settings
/// go, which may ask for standbys as well.
pub(super) struct Tokens {
    /// Whether the server can be told to write it to its own disk, which is enough where no standby has
    /// to confirm it.
    flushes: bool,
    commit: Commit,
}

impl Tokens {
    pub(super) fn new(flushes: bool, commit: Commit) -> Self {
        Self { flushes, commit }
    }

    /// A place in the log that nobody else has been given, and that is kept; `None` if the server does
    /// not see to that in time.
    pub(super) async fn take(
        &self,
        connection: &mut impl Connection,
    ) -> Result<Option<i64>, DriverError> {
        let (token, is_kept) = if self.flushes {
            place_on_disk(connection).await?
        } else {
            (place(connection, statements::PLACE).await?, false)
        };
        if is_kept {
            return Ok(Some(token));
        }
        let committed = in_time((self.commit)(), COMMITTED_WITHIN).await;
        // Not so where it leads to another server.
        let comes_after = matches!(committed, Some(Ok(end)) if end > token);
        Ok(comes_after.then_some(token))
    }
}

/// A fencing token, a place in the server's log, by a transaction of its own: at its end what is in
/// the log so far is on disk, and confirmed by the standbys that have to.
pub(super) async fn committed(connection: &mut impl Connection) -> Result<i64, DriverError> {
    place(connection, statements::FENCING_TOKEN).await
}

/// A place in the log that is on disk, and whether that is all that there is to wait for.
async fn place_on_disk(connection: &mut impl Connection) -> Result<(i64, bool), DriverError> {
    let rows = connection.batch(statements::PLACE_ON_DISK).await?;
    let read = match rows.last().map(Row::as_slice) {
        Some([place, awaits_standbys]) => place.int8().zip(awaits_standbys.bool()),
        _ => None,
    };
    let (place, awaits_standbys) = read.ok_or_else(DriverError::unexpected_answer)?;
    Ok((place, !awaits_standbys))
}

/// The place in the log that a statement tells.
async fn place(connection: &mut impl Connection, sql: &str) -> Result<i64, DriverError> {
    let rows = connection.batch(sql).await?;
    answer(&rows, Value::int8)
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    };

    use futures::{
        FutureExt,
        executor::block_on,
        future::{self, Either},
    };

    use super::{super::fake::Fake, *};
    use crate::Error;

    /// One that has been granted place 70.
    fn before_17() -> Fake {
        let place = vec![Value::Text("70".to_owned())];
        Fake::new().expect("''::pg_catalog.text)", Ok(vec![place]))
    }

    fn since_17(awaits_standbys: &str) -> Fake {
        let row = ["70", awaits_standbys].map(|value| Value::Text(value.to_owned()));
        Fake::new().expect("''::pg_catalog.text, true)", Ok(vec![row.to_vec()]))
    }

    /// With the commit beside ending so, at this place or never; also how often there was one.
    fn take(flushes: bool, fake: &Fake, end: Option<Result<i64>>) -> (Option<i64>, usize) {
        let commits = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&commits);
        let commit: Commit = Box::new(move || {
            counted.fetch_add(1, SeqCst);
            match end.clone() {
                Some(end) => future::ready(end).boxed(),
                None => future::pending().boxed(),
            }
        });
        let token = block_on(Tokens::new(flushes, commit).take(&mut fake.clone())).unwrap();
        assert!(fake.is_done());
        (token, commits.load(SeqCst))
    }

    #[test]
    fn a_token_is_handed_out_after_a_commit_beside() {
        assert_eq!(take(false, &before_17(), Some(Ok(71))), (Some(70), 1));
        // That cannot have come after it.
        assert_eq!(take(false, &before_17(), Some(Ok(69))), (None, 1));
    }

    #[test]
    fn no_token_is_handed_out_if_the_commit_beside_fails_or_hangs() {
        let failed = Some(Err(Error::Closed));
        assert_eq!(take(false, &before_17(), failed.clone()), (None, 1));
        assert_eq!(take(true, &since_17("t"), failed), (None, 1));
        assert_eq!(take(false, &before_17(), None), (None, 1));
    }

    #[test]
    fn a_token_waits_for_the_commit_as_long_as_that_takes() {
        let (committed, end) = futures::channel::oneshot::channel();
        let end = end.map(|end| Ok(end.unwrap())).boxed().shared();
        let commit: Commit = Box::new(move || end.clone().boxed());
        let (tokens, mut fake) = (Tokens::new(false, commit), before_17());
        let taking = Box::pin(tokens.take(&mut fake));
        let pause = futures_timer::Delay::new(Duration::from_millis(20));
        let Either::Right((_, taking)) = block_on(future::select(taking, pause)) else {
            panic!("it was not waited for");
        };
        committed.send(71).unwrap();
        assert_eq!(block_on(taking).unwrap(), Some(70));
    }

    /// Its own disk will do, unless there are standbys that have to confirm.
    #[test]
    fn a_server_that_flushes_needs_no_commit_but_for_standbys() {
        assert_eq!(take(true, &since_17("f"), None), (Some(70), 0));
        assert_eq!(take(true, &since_17("t"), Some(Ok(71))), (Some(70), 1));
    }
}
