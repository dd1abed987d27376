use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
};

use async_trait::async_trait;

use super::{Connection, DriverError, Param, Row};

/// A connection that has been told what it will be asked, and what to answer. Clones are the same
/// connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Fake {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// A part of each statement's text, and the answer to it.
    script: VecDeque<(&'static str, Result<Vec<Row>, DriverError>)>,
    /// The parameters that came with each statement.
    params: Vec<String>,
    recycled: bool,
}

impl Fake {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// After what was expected so far, expects a statement that contains `part`.
    pub(super) fn expect(self, part: &'static str, answer: Result<Vec<Row>, DriverError>) -> Self {
        self.state().script.push_back((part, answer));
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

    fn answer(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, DriverError> {
        let mut state = self.state();
        state.params.push(format!("{params:?}"));
        let (part, answer) = state.script.pop_front().expect("no more statements");
        assert!(sql.contains(part), "{part} expected, not {sql}");
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
        self.answer(sql, params)
    }

    async fn batch(&mut self, sql: &str) -> Result<Vec<Row>, DriverError> {
        self.answer(sql, &[])
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
