use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard},
    task::Poll,
};

use async_trait::async_trait;

use super::{Connection, DriverError, Param, Pool, Row};

/// A connection that has been told what it will be asked, and what to answer. Clones are the same
/// connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Fake {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    script: VecDeque<Expected>,
    /// The parameters that came with each statement.
    params: Vec<String>,
    recycled: bool,
}

#[derive(Debug)]
struct Expected {
    /// A part of the statement's text.
    part: &'static str,
    answer: Result<Vec<Row>, DriverError>,
    /// It is not answered before this one has been asked so many times.
    after: Option<(Fake, usize)>,
}

impl Fake {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// After what was expected so far, expects a statement that contains `part`.
    pub(super) fn expect(self, part: &'static str, answer: Result<Vec<Row>, DriverError>) -> Self {
        self.then(Expected {
            part,
            answer,
            after: None,
        })
    }

    /// The same, with an answer that comes once another connection has been asked everything that it
    /// expects by now. Nobody is woken for that: it is seen by whoever looks.
    pub(super) fn expect_after(
        self,
        other: &Self,
        part: &'static str,
        answer: Result<Vec<Row>, DriverError>,
    ) -> Self {
        let asked = {
            let other = other.state();
            other.params.len() + other.script.len()
        };
        self.then(Expected {
            part,
            answer,
            after: Some((other.clone(), asked)),
        })
    }

    fn then(self, expected: Expected) -> Self {
        self.state().script.push_back(expected);
        self
    }

    /// The parameters of each statement so far.
    pub(super) fn params(&self) -> Vec<String> {
        self.state().params.clone()
    }

    /// Whether everything that was expected has been asked.
    pub(super) fn is_done(&self) -> bool {
        self.state().script.is_empty()
    }

    pub(super) fn is_recycled(&self) -> bool {
        self.state().recycled
    }

    async fn answer(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, DriverError> {
        let expected = {
            let mut state = self.state();
            state.params.push(format!("{params:?}"));
            state.script.pop_front().expect("no more statements")
        };
        let Expected {
            part,
            answer,
            after,
        } = expected;
        assert!(sql.contains(part), "{part} expected, not {sql}");
        if let Some((other, asked)) = after {
            poll_fn(|_| match other.state().params.len() >= asked {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
        }
        answer
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test has failed yet")
    }
}

#[async_trait]
impl Connection for Fake {
    async fn query(
        &mut self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, DriverError> {
        self.answer(sql, params).await
    }

    async fn batch(&mut self, sql: &str) -> Result<Vec<Row>, DriverError> {
        self.answer(sql, &[]).await
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn notices_closing(&self) -> bool {
        false
    }

    async fn recycle(self) {
        self.state().recycled = true;
    }
}

/// All of its connections are the same.
#[derive(Debug)]
pub(super) struct PoolOfOne(pub(super) Fake);

#[async_trait]
impl Pool for PoolOfOne {
    type Connection = Fake;

    async fn checkout(&self) -> crate::Result<Fake> {
        Ok(self.0.clone())
    }

    async fn connect(&self) -> crate::Result<Fake> {
        Ok(self.0.clone())
    }

    fn borrowed(&self) -> Option<usize> {
        None
    }

    async fn close(&self) {}
}

/// What a server answers that refuses a statement.
pub(super) fn failure(code: &str) -> DriverError {
    DriverError::Server {
        code: code.to_owned(),
        detail: None,
        source: Arc::new(std::io::Error::other("the server said no")),
    }
}
