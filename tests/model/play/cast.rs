//! Makes the tasks that play a program.

use std::{iter, sync::Arc, time::Duration};

use advisory::{Lock, LockManager, Options};
use futures::channel::mpsc::{UnboundedSender, unbounded};

use super::{Player, Role};
use crate::{
    outcome::Outcome,
    program::{self, Kind, Managers, Program},
    task::Task,
    watch::Watched,
};

/// How soon a section is stopped whose session was killed. Soon, because that is waited for.
const LOSS_SEEN_WITHIN: Duration = Duration::from_millis(20);

impl Player<'_> {
    pub(super) async fn cast(
        &mut self,
        program: &Program,
        run: i32,
        outcomes: UnboundedSender<(usize, usize, Outcome)>,
    ) -> Vec<Task> {
        let managers: Vec<_> = match program.managers {
            Managers::OneForAll => iter::repeat_n(self.manager(), program.owners.len()).collect(),
            Managers::OneEach => program.owners.iter().map(|_| self.manager()).collect(),
        };
        let locks = program::locks(&managers[0], run);
        self.keys = locks.iter().map(Lock::key).collect();

        let mut tasks = Vec::new();
        for (owner, (kind, manager)) in program.owners.iter().zip(&managers).enumerate() {
            self.journal.turn_to(owner);
            let session = match kind {
                Kind::Session => Some(manager.session().await.expect("the server is up")),
                Kind::Task => None,
            };
            let (commands, receiver) = unbounded();
            let stop = Arc::default();
            self.roles.push(Role {
                kind: *kind,
                commands,
                stop: Arc::clone(&stop),
                depth: 0,
                at: None,
                lost: 0,
            });
            tasks.push(Task {
                owner,
                locks: program::locks(manager, run).into(),
                session,
                guards: Vec::new(),
                commands: receiver,
                outcomes: outcomes.clone(),
                stop,
                journal: Arc::clone(&self.journal),
                quits: false,
            });
        }
        tasks
    }

    fn manager(&self) -> LockManager {
        let backend = Watched {
            inner: self.server.backend(),
            journal: Arc::clone(&self.journal),
            turns: self.turns,
        };
        let options = Options::new().loss_seen_within(LOSS_SEEN_WITHIN);
        LockManager::with_options(backend, options)
    }
}
