use std::{fmt::Write as _, sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{Connection, DriverError, Param, Row, server::Server, settings::DeadHost, statements};
use crate::{Error, limit::in_time};

/// How long the end of a transaction may take. Nothing is held by then, and whoever waits for another
/// answer, or for his connection to go back, must not be kept by it.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// A connection on which everything runs inside one transaction.
///
/// Behind a pooler in transaction mode that is the one way to keep a server session: it is the
/// client's for as long as the transaction is open. Locks are the session's all the same, so that
/// they are given back one by one.
///
/// - The transaction is begun in the message of the first statement, and ended by a
///   [`COMMIT`](statements::COMMIT), or when the connection goes back to its pool. Dropping the
///   connection ends it, too.
/// - Each message has a savepoint of its own: what fails in it fails alone.
/// - Everything goes by the simple protocol, values written into the text: a statement that was
///   prepared by name would be looked for on whatever server session the next transaction gets.
///   So all that comes back is text.
#[derive(Debug)]
pub(super) struct Pinned<C> {
    connection: C,
    begin: Arc<str>,
    begun: bool,
}

/// The statements that begin a transaction in which a session can live.
///
/// Whatever the role's defaults are, no snapshot is kept between statements, which would hold up
/// vacuum and every index build, and no timeout ends a transaction that holds locks and is idle.
pub(super) fn begin(server: Option<&Server>, dead_host: Option<DeadHost>) -> Arc<str> {
    let mut sql = String::from("BEGIN ISOLATION LEVEL READ COMMITTED");
    let mut set = |name: &str, value: i64| {
        // A string takes all.
        let _ = write!(sql, ";\nSET LOCAL {name} = {value}");
    };
    set("statement_timeout", 0);
    set("idle_in_transaction_session_timeout", 0);
    if server.is_some_and(Server::has_transaction_timeout) {
        set("transaction_timeout", 0);
    }
    for (name, value) in dead_host.iter().flat_map(DeadHost::tcp_settings) {
        set(name, value);
    }
    sql.into()
}

impl<C: Connection> Pinned<C> {
    pub(super) fn new(connection: C, begin: Arc<str>) -> Self {
        Self {
            connection,
            begin,
            begun: false,
        }
    }

    /// Ends the transaction, if there is one, and leaves a connection as it was before.
    ///
    /// # Errors
    ///
    /// The connection may then be anywhere, and is to be dropped.
    pub(super) async fn end(mut self) -> Result<C, DriverError> {
        self.commit().await?;
        Ok(self.connection)
    }

    async fn commit(&mut self) -> Result<(), DriverError> {
        if self.begun {
            let ended = in_time(self.connection.batch(statements::COMMIT), ENDS_WITHIN).await;
            ended.unwrap_or_else(|| Err(unanswered()))?;
            self.begun = false;
        }
        Ok(())
    }

    async fn run(&mut self, sql: &str) -> Result<Vec<Row>, DriverError> {
        // A wait leaves its own limit behind.
        let guarded = format!(
            "SAVEPOINT advisory;\nSET LOCAL lock_timeout = 0;\n{sql};\nRELEASE SAVEPOINT advisory"
        );
        let outcome = if self.begun {
            self.connection.batch(&guarded).await
        } else {
            let message = format!("{};\n{guarded}", self.begin);
            self.connection.batch(&message).await
        };
        let error = match outcome {
            Ok(rows) => {
                self.begun = true;
                return Ok(rows);
            }
            Err(error) if error.ends_session() => return Err(error),
            Err(error) => error,
        };
        let undo = "ROLLBACK TO SAVEPOINT advisory;\nRELEASE SAVEPOINT advisory";
        match self.connection.batch(undo).await {
            Ok(_) => {
                self.begun = true;
                Err(error)
            }
            // It failed before the savepoint, or the transaction is gone.
            Err(_) => Err(error.into_end_of_session()),
        }
    }
}

#[async_trait]
impl<C: Connection> Connection for Pinned<C> {
    async fn query(
        &mut self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, DriverError> {
        self.run(&written_out(sql, params)).await
    }

    async fn batch(&mut self, sql: &str) -> Result<Vec<Row>, DriverError> {
        match sql {
            // The next statement begins another.
            statements::COMMIT => self.commit().await.map(|()| Vec::new()),
            // Needs no transaction, and no savepoint.
            "" => self.connection.batch(sql).await,
            _ => self.run(sql).await,
        }
    }

    fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    fn notices_closing(&self) -> bool {
        self.connection.notices_closing()
    }

    async fn recycle(self) {
        if let Ok(connection) = self.end().await {
            connection.recycle().await;
        }
    }
}

fn unanswered() -> DriverError {
    DriverError::Connection(Error::unanswered(ENDS_WITHIN).cause())
}

/// The statement with its parameters written into the text: numbers, nothing else.
fn written_out(sql: &str, params: &[Param<'_>]) -> String {
    params
        .iter()
        .enumerate()
        .fold(sql.to_owned(), |sql, (at, param)| {
            // Quoted, since a minus sign binds less than the cast that follows.
            let value = match param {
                Param::Int4(value) => format!("'{value}'"),
                Param::Int8(value) => format!("'{value}'"),
                Param::Int8Array(values) => {
                    let values: Vec<_> = values.iter().map(i64::to_string).collect();
                    format!("'{{{}}}'", values.join(","))
                }
            };
            sql.replace(&format!("${}", at + 1), &value)
        })
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::{
        super::{
            Value,
            fake::{Fake, failure},
        },
        *,
    };

    const PID: &str = "SELECT pg_catalog.pg_backend_pid()";

    fn pinned(fake: &Fake) -> Pinned<Fake> {
        Pinned::new(fake.clone(), begin(None, None))
    }

    #[test]
    fn the_first_statement_begins_and_going_back_ends() {
        let fake = Fake::new()
            .expect("BEGIN", Ok(vec![vec![Value::Text("71".to_owned())]]))
            .expect("lock_timeout = 0;\nSELECT", Ok(Vec::new()))
            .expect("COMMIT", Ok(Vec::new()));
        let mut connection = pinned(&fake);
        let rows = block_on(connection.query(PID, &[])).unwrap();
        assert_eq!(rows[0][0].int4(), Some(71));
        block_on(connection.query(PID, &[])).unwrap();
        block_on(connection.recycle());
        assert!(fake.is_done() && fake.is_recycled());
    }

    #[test]
    fn a_connection_that_was_not_used_has_nothing_to_end() {
        let fake = Fake::new();
        block_on(pinned(&fake).recycle());
        assert!(fake.is_recycled());
    }

    #[test]
    fn what_fails_is_undone_and_fails_alone() {
        let fake = Fake::new()
            .expect("BEGIN", Err(failure("53200")))
            .expect("ROLLBACK TO", Ok(Vec::new()))
            .expect("lock_timeout = 0;\nSELECT", Ok(Vec::new()));
        let mut connection = pinned(&fake);
        let error = block_on(connection.query(PID, &[])).unwrap_err();
        assert!(error.has_code("53200") && !error.ends_session());
        block_on(connection.query(PID, &[])).unwrap();
    }

    #[test]
    fn a_transaction_that_is_gone_ends_the_session() {
        let fake = Fake::new()
            .expect("BEGIN", Ok(Vec::new()))
            .expect("SAVEPOINT", Err(failure("25P01")))
            .expect("ROLLBACK TO", Err(failure("25P01")));
        let mut connection = pinned(&fake);
        block_on(connection.query(PID, &[])).unwrap();
        let error = block_on(connection.query(PID, &[])).unwrap_err();
        assert!(error.ends_session());
    }

    #[test]
    fn a_transaction_that_does_not_end_is_not_given_back() {
        let fake = Fake::new()
            .expect("BEGIN", Ok(Vec::new()))
            .expect("COMMIT", Err(failure("57014")));
        let mut connection = pinned(&fake);
        block_on(connection.query(PID, &[])).unwrap();
        block_on(connection.recycle());
        assert!(!fake.is_recycled());
    }

    #[test]
    fn a_transaction_whose_end_is_not_answered_keeps_nobody() {
        let never = Fake::new().expect("what nobody asks", Ok(Vec::new()));
        let fake = Fake::new().expect("BEGIN", Ok(Vec::new())).expect_after(
            &never,
            "COMMIT",
            Ok(Vec::new()),
        );
        let mut connection = pinned(&fake);
        block_on(connection.query(PID, &[])).unwrap();
        block_on(connection.recycle());
        assert!(fake.is_done() && !fake.is_recycled());
    }

    #[test]
    fn parameters_are_written_out() {
        let sql = "SELECT f($1::int8), g($2::int4), $1 FROM unnest($3::int8[])";
        let params = [
            Param::Int8(i64::MIN),
            Param::Int4(-7),
            Param::Int8Array(&[1, -2]),
        ];
        assert_eq!(
            written_out(sql, &params),
            "SELECT f('-9223372036854775808'::int8), g('-7'::int4), '-9223372036854775808' \
             FROM unnest('{1,-2}'::int8[])",
        );
        assert_eq!(
            written_out("$1::int8[]", &[Param::Int8Array(&[])]),
            "'{}'::int8[]"
        );
    }

    #[test]
    fn the_transaction_keeps_its_settings_to_itself() {
        let dead_host = DeadHost::within(Duration::from_secs(30));
        let sql = begin(Some(&Server::for_tests()), Some(dead_host));
        assert!(sql.contains("SET LOCAL tcp_user_timeout = 30000"));
        assert!(!sql.contains("transaction_timeout = 0;\nSET LOCAL transaction_timeout"));
        for statement in sql.split(";\n").skip(1) {
            assert!(statement.starts_with("SET LOCAL "), "{statement}");
        }
    }
}
