use std::str::FromStr;

use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use super::background;

/// The name that all raw clients go by, so that they can be told from the library's sessions.
pub(super) const APPLICATION_NAME: &str = "advisory-observer";

/// A connection that the library has nothing to do with. It can be used on any runtime.
///
/// # Panics
///
/// Every method, if the server reports an error.
#[derive(Debug)]
pub struct RawClient {
    client: Client,
}

impl RawClient {
    /// Connects to a database.
    pub async fn connect(url: &str) -> Self {
        let mut config = Config::from_str(url).expect("a URL of a database");
        config.application_name(APPLICATION_NAME);
        let connecting = background().spawn(async move {
            let (client, connection) = config.connect(NoTls).await?;
            // It ends with the client, or with an error, which the client reports as well.
            background().spawn(connection);
            Ok::<_, tokio_postgres::Error>(client)
        });
        let connected = connecting.await.expect("connecting does not panic");
        let client = connected.unwrap_or_else(|error| panic!("cannot connect to {url}: {error:?}"));
        Self { client }
    }

    /// Runs statements, and drops what they return.
    pub async fn run(&self, sql: &str) {
        self.rows(sql).await;
    }

    /// Runs statements; all their rows, as text.
    pub async fn rows(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        let messages = self.client.simple_query(sql).await;
        let messages = messages.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        messages
            .into_iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(
                    (0..row.len())
                        .map(|column| row.get(column).map(str::to_owned))
                        .collect(),
                ),
                _ => None,
            })
            .collect()
    }

    /// Runs a statement that returns one value.
    pub async fn value(&self, sql: &str) -> String {
        match self.rows(sql).await.as_slice() {
            [row] => match row.as_slice() {
                [Some(value)] => value.clone(),
                other => panic!("{sql}: not one value: {other:?}"),
            },
            other => panic!("{sql}: not one row: {other:?}"),
        }
    }
}
