use std::{
    ops::Range,
    sync::{Arc, Mutex, PoisonError, RwLock},
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;
use futures::executor::block_on;

use super::{
    clock::Span,
    fault::{Fault, Strike},
    journal::Journal,
    process::lock,
};
use crate::postgres::{Database, Server};

/// How long the server is left alone between two faults of its own, in milliseconds.
const SERVER_PAUSE: Range<u64> = 4000..16_000;

/// Where it all happens, and what has happened so far.
#[derive(Debug)]
pub(super) struct Arena {
    pub(super) server: Server,
    pub(super) database: Database,
    until: Instant,
    /// One for each worker there has been.
    journals: Mutex<Vec<Arc<Mutex<Journal>>>>,
    strikes: Mutex<Vec<Strike>>,
    /// Held by those who talk to the server, so that it is there, and alone by who has it stop.
    talks: RwLock<()>,
}

impl Arena {
    /// A server with a database, for so long.
    pub(super) fn open(lasts: Duration) -> Self {
        // A tenth of the default, and with it the slices of the waits.
        let server = Server::start(&[("deadlock_timeout", "100ms")]);
        Self {
            database: block_on(server.database()),
            server,
            until: Instant::now() + lasts,
            journals: Mutex::default(),
            strikes: Mutex::default(),
            talks: RwLock::default(),
        }
    }

    /// Lets time pass; whether there is any left for another fault.
    pub(super) fn pause(&self, millis: u64) -> bool {
        let pause = Duration::from_millis(millis);
        let left = self.until.saturating_duration_since(Instant::now());
        thread::sleep(pause.min(left));
        pause < left
    }

    /// The number and the journal of a new worker.
    pub(super) fn admit(&self) -> (usize, Arc<Mutex<Journal>>) {
        let mut journals = lock(&self.journals);
        let journal = Arc::default();
        journals.push(Arc::clone(&journal));
        (journals.len() - 1, journal)
    }

    /// Has a fault strike, and takes note of it.
    pub(super) fn strike(
        &self,
        fault: Fault,
        worker: Option<usize>,
        happens: impl FnOnce(),
    ) -> Span {
        let (span, ()) = Span::of(happens);
        lock(&self.strikes).push(Strike {
            fault,
            worker,
            span,
        });
        span
    }

    /// Ends sessions of this application, at most so many.
    pub(super) fn terminate(&self, application: &str, most: u32) {
        let _talk = self.talks.read().unwrap_or_else(PoisonError::into_inner);
        block_on(async {
            let client = self.server.client().await;
            client
                .run(&format!(
                    "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity
                     WHERE application_name = '{application}' ORDER BY random() LIMIT {most}) AS s"
                ))
                .await;
        });
    }

    /// Stops the server now and then, while nobody talks to it but the workers.
    pub(super) fn strike_server(&self, mut rng: Rng) {
        while self.pause(rng.u64(SERVER_PAUSE)) {
            let fault = Fault::of_server(&mut rng);
            let _alone = self.talks.write().unwrap_or_else(PoisonError::into_inner);
            self.strike(fault, None, || match fault {
                Fault::Crashed => {
                    self.server.crash();
                    self.server.start_again();
                }
                _ => self.server.restart(),
            });
        }
    }

    /// What has happened to whom.
    pub(super) fn history(&self) -> (Vec<Journal>, Vec<Strike>) {
        let journals = lock(&self.journals);
        let journals = journals.iter().map(|journal| lock(journal).clone());
        (journals.collect(), lock(&self.strikes).clone())
    }
}
