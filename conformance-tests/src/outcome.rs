//! What cases say about how something ended.

use std::fmt::Debug;

use advisory_core::{Error, Result, Section};

use crate::Task;

/// What became of the section whose lock was lost.
pub(crate) fn lost<T: Debug>(result: Result<T>) -> Section {
    match result {
        Err(Error::Lost { section, .. }) => section,
        other => panic!("the lock was lost, and this says: {other:?}"),
    }
}

/// How many of the tasks were a deadlock's victim. The others have to end well.
pub(crate) async fn victims(tasks: impl IntoIterator<Item = Task<Result<()>>>) -> usize {
    let mut victims = 0;
    for task in tasks {
        match task.await {
            Ok(()) => {}
            Err(Error::Deadlock { .. }) => victims += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
    victims
}
