use std::{panic::AssertUnwindSafe, sync::Arc, thread, time::Duration};

use futures::{
    FutureExt,
    future::{BoxFuture, Either, select},
};
use futures_timer::Delay;

use crate::{Env, Harness, Runtime, cases, every_poll};

/// No case takes this long, unless it hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// A case, as the list knows it.
#[derive(Debug)]
pub(crate) struct Case<E: 'static> {
    /// Its topic and name: `acquire::excludes_others`.
    pub(crate) name: &'static str,
    pub(crate) run: for<'a> fn(&'a E) -> BoxFuture<'a, ()>,
}

/// Runs one case of the suite; the tests that [`suite!`](crate::suite) generates call it.
///
/// # Panics
///
/// If the case fails, does not end, or does not exist.
pub fn run_case(harness: impl Harness, runtime: impl Runtime, name: &str) {
    run_of(cases::LIST, harness, runtime, name);
}

/// Runs one case of those that drop a future at every poll; the tests that
/// [`every_poll_suite!`](crate::every_poll_suite) generates call it.
///
/// # Panics
///
/// If the case fails, does not end, or does not exist.
pub fn run_every_poll_case(harness: impl Harness, runtime: impl Runtime, name: &str) {
    run_of(every_poll::LIST, harness, runtime, name);
}

fn run_of(list: &'static [Case<Env>], harness: impl Harness, runtime: impl Runtime, name: &str) {
    let runtime: Arc<dyn Runtime> = Arc::new(runtime);
    let case = find(list, name);
    if harness.leaves_out(name) {
        return;
    }
    run(
        &*Arc::clone(&runtime),
        case,
        async || Env::new(runtime, harness.space().await),
        Env::end,
    );
}

/// Sets a case up, runs it, and ends it, also when it has failed.
pub(crate) fn run<E>(
    runtime: &dyn Runtime,
    case: &Case<E>,
    set_up: impl AsyncFnOnce() -> E,
    end: impl AsyncFnOnce(E, thread::Result<()>),
) {
    runtime.block_on(Box::pin(async move {
        let env = set_up().await;
        let outcome = AssertUnwindSafe(in_time((case.run)(&env)))
            .catch_unwind()
            .await;
        end(env, outcome).await;
    }));
}

pub(crate) fn find<E>(list: &'static [Case<E>], name: &str) -> &'static Case<E> {
    list.iter()
        .find(|case| case.name == name)
        .unwrap_or_else(|| panic!("there is no case {name}"))
}

/// Makes a failure of a case that hangs.
async fn in_time(case: BoxFuture<'_, ()>) {
    if let Either::Right(_) = select(case, Delay::new(LIMIT)).await {
        panic!("the case did not end within {LIMIT:?}");
    }
}
