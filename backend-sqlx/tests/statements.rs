//! How statements, their rows and their errors come through.

mod common;

use advisory_core::postgres::{Connection, DriverError, Param, Value};
use common::{checkout, kill, pid, pool};

#[tokio::test]
async fn values_keep_their_types() {
    let mut connection = checkout(&pool(1)).await;
    let rows = connection
        .query(
            "SELECT $1::int4, $2::int8, true, 'text', n FROM unnest($3::int8[]) n",
            &[
                Param::Int4(i32::MIN),
                Param::Int8(i64::MAX),
                Param::Int8Array(&[7, 8]),
            ],
        )
        .await
        .unwrap();
    let row = |n| {
        vec![
            Value::Int4(i32::MIN),
            Value::Int8(i64::MAX),
            Value::Bool(true),
            Value::Text("text".to_owned()),
            Value::Int8(n),
        ]
    };
    assert_eq!(rows, [row(7), row(8)]);
}

#[tokio::test]
async fn null_and_void_are_null() {
    let mut connection = checkout(&pool(1)).await;
    let rows = connection
        .query(
            "SELECT NULL, NULL::int4, NULL::int8, NULL::bool, NULL::text, pg_advisory_lock(36)",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(rows, [vec![Value::Null; 6]]);
}

#[tokio::test]
async fn no_rows_and_no_columns_are_no_error() {
    let mut connection = checkout(&pool(1)).await;
    let rows = connection.query("SELECT 1 WHERE false", &[]).await.unwrap();
    assert!(rows.is_empty());
    let rows = connection.query("SET lock_timeout = 0", &[]).await.unwrap();
    assert!(rows.is_empty());
}

#[tokio::test]
async fn a_batch_returns_the_rows_of_all_its_statements_as_text() {
    let mut connection = checkout(&pool(1)).await;
    let rows = connection
        .batch("SET LOCAL lock_timeout = 0; SELECT 1, true; DO $$ BEGIN END $$; SELECT NULL, 'b'")
        .await
        .unwrap();
    let text = |text: &str| Value::Text(text.to_owned());
    assert_eq!(rows, [[text("1"), text("t")], [Value::Null, text("b")]]);
}

#[tokio::test]
async fn a_batch_is_one_transaction() {
    let mut connection = checkout(&pool(1)).await;
    let sql = "SELECT pg_current_xact_id()::text; SELECT pg_current_xact_id()::text";
    let rows = connection.batch(sql).await.unwrap();
    assert_eq!(rows[0], rows[1]);
}

#[tokio::test]
async fn a_statement_is_prepared_once() {
    let mut connection = checkout(&pool(1)).await;
    for _ in 0..3 {
        connection.query("SELECT 'once'", &[]).await.unwrap();
    }
    let sql = "SELECT name FROM pg_prepared_statements WHERE statement = $$SELECT 'once'$$";
    assert_eq!(connection.batch(sql).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_servers_answer_is_taken_apart_and_the_connection_goes_on() {
    let mut connection = checkout(&pool(1)).await;
    let raise = "DO $$ BEGIN \
                 RAISE 'full' USING ERRCODE = '53200', DETAIL = 'A detail.'; \
                 END $$";
    let query = connection.query(raise, &[]).await.unwrap_err();
    let batch = connection.batch(raise).await.unwrap_err();
    for error in [query, batch] {
        let DriverError::Server {
            code,
            detail,
            source,
        } = error
        else {
            panic!("{error:?}");
        };
        assert_eq!(code, "53200");
        assert_eq!(detail.as_deref(), Some("A detail."));
        assert!(source.to_string().contains("full"));
    }
    assert!(!connection.is_closed());
    connection.query("SELECT 1", &[]).await.unwrap();
}

#[tokio::test]
async fn a_type_that_no_statement_should_yield_closes_the_connection() {
    let mut connection = checkout(&pool(1)).await;
    let error = connection
        .query("SELECT 1.5::float8", &[])
        .await
        .unwrap_err();
    assert!(matches!(error, DriverError::Connection(_)), "{error:?}");
    assert!(connection.is_closed());
}

#[tokio::test]
async fn a_killed_connection_is_closed_and_makes_room() {
    let pool = pool(1);
    let mut connection = checkout(&pool).await;
    let pid = pid(&mut connection).await;
    kill(pid);

    assert!(!connection.is_closed(), "nobody has looked yet");
    connection.query("SELECT 1", &[]).await.unwrap_err();
    assert!(connection.is_closed());
    let error = connection.query("SELECT 1", &[]).await.unwrap_err();
    assert!(matches!(error, DriverError::Connection(_)), "{error:?}");

    // The pool of one lends its next connection while this one is still around.
    checkout(&pool).await.query("SELECT 1", &[]).await.unwrap();
    connection.recycle().await;
}
