use std::{
    pin::pin,
    time::{Duration, Instant},
};

use futures::{
    FutureExt,
    future::{BoxFuture, select},
};
use futures_timer::Delay;

use super::{Connection, DriverError, Value, driver::answer, statements};
use crate::Result;

/// How long the server may take to write its log to disk: less than it may take to answer, after
/// which a session counts as lost.
const ON_DISK_WITHIN: Duration = Duration::from_secs(3);

/// The first pause between two looks at how far it has come, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(64));

/// Has the server write to disk what is in its log so far.
pub(super) type Flush = Box<dyn Fn() -> BoxFuture<'static, Result<i64>> + Send + Sync>;

/// How a fencing token that is taken inside a transaction which goes on comes to be on disk before
/// it is handed out: what a crash forgets could be given out again.
pub(super) enum Tokens {
    /// By a server that can be told to wait for it.
    WaitedFor,
    /// By somebody else's transaction, which ends after it.
    Flushed(Flush),
}

impl Tokens {
    /// A place in the log that nobody else has been given, and that is on disk; `None` if the
    /// server does not write it in time.
    pub(super) async fn take(
        &self,
        connection: &mut impl Connection,
    ) -> Result<Option<i64>, DriverError> {
        match self {
            Self::WaitedFor => place(connection, statements::PLACE_ON_DISK).await.map(Some),
            Self::Flushed(flush) => {
                let token = place(connection, statements::PLACE).await?;
                let on_disk = is_on_disk(connection, token, flush).await?;
                Ok(on_disk.then_some(token))
            }
        }
    }
}

/// A fencing token, a place in the server's log, by a transaction of its own: at its end what is in
/// the log so far is on disk.
pub(super) async fn committed(connection: &mut impl Connection) -> Result<i64, DriverError> {
    place(connection, statements::FENCING_TOKEN).await
}

/// Waits until the log is on disk up to this place.
///
/// By itself an idle server takes up to a quarter of a minute for that. Whether the flush went well
/// does not matter: the place is looked at.
async fn is_on_disk(
    connection: &mut impl Connection,
    token: i64,
    flush: &Flush,
) -> Result<bool, DriverError> {
    let started = Instant::now();
    let mut flush = pin!(flush().fuse());
    let (mut pause, longest) = PAUSES;
    while place(connection, statements::ON_DISK).await? < token {
        if started.elapsed() > ON_DISK_WITHIN {
            return Ok(false);
        }
        select(flush.as_mut(), Delay::new(pause)).await;
        pause = longest.min(pause * 2);
    }
    Ok(true)
}

/// The place in the log that a statement tells.
async fn place(connection: &mut impl Connection, sql: &str) -> Result<i64, DriverError> {
    let rows = connection.batch(sql).await?;
    answer(&rows, Value::int8)
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::{
        super::{Row, fake::Fake},
        *,
    };

    fn at(place: i64) -> Result<Vec<Row>, DriverError> {
        Ok(vec![vec![Value::Text(place.to_string())]])
    }

    #[test]
    fn a_token_is_not_handed_out_before_it_is_on_disk() {
        let mut fake = Fake::new()
            .expect("emit_message(false", at(70))
            .expect("flush_lsn", at(60))
            .expect("flush_lsn", at(69))
            .expect("flush_lsn", at(70));
        // Failing does not matter.
        let tokens = Tokens::Flushed(Box::new(|| Box::pin(async { Err(crate::Error::Closed) })));
        let token = block_on(tokens.take(&mut fake)).unwrap();
        assert_eq!(token, Some(70));
        assert!(fake.is_done());
    }
}
