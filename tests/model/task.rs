//! A task that is told what to do, one command at a time.

use std::sync::Arc;

use advisory::{Lock, LockGuard, LockMode, Session};
use futures::{
    FutureExt, StreamExt,
    channel::mpsc::{UnboundedReceiver, UnboundedSender},
    future::LocalBoxFuture,
};

use crate::{
    journal::Journal,
    outcome::Outcome,
    program::{Name, Patience},
    stop::Stop,
};

/// Keeps what an owner has within bounds; each guard of a task takes a connection.
const MOST_GUARDS: usize = 4;
const MOST_SECTIONS: usize = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Command {
    Lock(Name, Patience),
    Release(usize),
    Drop(usize),
    Enter(Name, Patience),
    Leave,
    Abandon,
    /// To look which of its locks it knows to be lost.
    Check,
    Quit,
}

/// What one owner has, and how it is spoken to.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) owner: usize,
    pub(crate) locks: Vec<Lock>,
    /// If it is an owner that holds its session in its hand.
    pub(crate) session: Option<Session>,
    pub(crate) guards: Vec<LockGuard>,
    pub(crate) commands: UnboundedReceiver<Command>,
    /// Whose outcome it is, inside how many sections it is, and the outcome.
    pub(crate) outcomes: UnboundedSender<(usize, usize, Outcome)>,
    pub(crate) stop: Arc<Stop>,
    pub(crate) journal: Arc<Journal>,
    /// Whether all sections are to end.
    pub(crate) quits: bool,
}

impl Task {
    /// Obeys until it is told to quit, and frees what is left.
    pub(crate) async fn run(mut self) {
        self.obey(0).await;
        for guard in self.guards.drain(..) {
            // That it is lost has been said, or will be said by what the server holds.
            _ = guard.release().await;
        }
        if let Some(session) = self.session.take() {
            _ = session.release().await;
        }
        self.tell(0, Outcome::Over);
    }

    /// Obeys inside so many sections, until the innermost one ends.
    fn obey(&mut self, depth: usize) -> LocalBoxFuture<'_, ()> {
        async move {
            while !self.quits
                && let Some(command) = self.commands.next().await
            {
                let outcome = match command {
                    Command::Lock(name, patience) => self.lock(name, patience, depth).await,
                    Command::Release(nth) => self.release(nth).await,
                    Command::Drop(nth) => self.drop(nth),
                    Command::Enter(name, patience) if depth < MOST_SECTIONS => {
                        self.enter(name, patience, depth).await
                    }
                    Command::Leave if depth > 0 => return,
                    Command::Abandon if depth > 0 => {
                        self.stop.request();
                        std::future::pending().await
                    }
                    Command::Check => Outcome::Lost(self.count_lost()),
                    Command::Quit => {
                        self.quits = true;
                        return;
                    }
                    Command::Enter(..) | Command::Leave | Command::Abandon => Outcome::Nothing,
                };
                self.tell(depth, outcome);
            }
        }
        .boxed_local()
    }

    async fn lock(&mut self, name: Name, patience: Patience, depth: usize) -> Outcome {
        if self.guards.len() == MOST_GUARDS {
            return Outcome::Nothing;
        }
        let lock = self.named(name);
        // Inside a section the context is the session's.
        let session = self.session.as_ref().filter(|_| depth == 0);
        let locking = async {
            match (session, patience) {
                (None, Patience::None) => lock.try_lock().await,
                (None, Patience::Unlimited) => lock.lock().await.map(Some),
                (Some(session), Patience::None) => session.try_lock(&lock).await,
                (Some(session), Patience::Unlimited) => session.lock(&lock).await.map(Some),
                (None, Patience::Limit(limit)) => lock.lock_timeout(limit).await.map(Some),
                (Some(session), Patience::Limit(limit)) => {
                    session.lock_timeout(&lock, limit).await.map(Some)
                }
            }
        };
        match self.stop.or(locking).await {
            Some(Ok(Some(guard))) => {
                self.guards.push(guard);
                Outcome::Locked
            }
            Some(Ok(None)) => Outcome::Missed,
            Some(Err(error)) => Outcome::failed(&error, &self.journal),
            None => Outcome::Dropped,
        }
    }

    async fn release(&mut self, nth: usize) -> Outcome {
        let Some(guard) = self.take(nth) else {
            return Outcome::Nothing;
        };
        match guard.release().await {
            Ok(()) => Outcome::Freed,
            Err(error) => Outcome::failed(&error, &self.journal),
        }
    }

    fn drop(&mut self, nth: usize) -> Outcome {
        match self.take(nth) {
            Some(_guard) => Outcome::Freed,
            None => Outcome::Nothing,
        }
    }

    /// Runs a section, which obeys in its turn.
    async fn enter(&mut self, name: Name, patience: Patience, depth: usize) -> Outcome {
        let (lock, stop) = (self.named(name), Arc::clone(&self.stop));
        let session = self.session.clone().filter(|_| depth == 0);
        let running = async {
            let section = async || {
                self.tell(depth + 1, Outcome::Entered);
                self.obey(depth + 1).await;
            };
            let running = async {
                match patience {
                    Patience::None => lock.try_with(section).await,
                    Patience::Unlimited => lock.with(section).await.map(Some),
                    Patience::Limit(limit) => lock.with_timeout(limit, section).await.map(Some),
                }
            };
            let Some(session) = &session else {
                return running.await;
            };
            let mut ended = Ok(None);
            let scope = session.scope(async { ended = running.await }).await;
            // The section may have been stopped, and the scope around it run to its end.
            ended.and_then(|ended| scope.map(|()| ended))
        };
        match stop.or(running).await {
            Some(Ok(Some(()))) => Outcome::Left,
            Some(Ok(None)) => Outcome::Missed,
            Some(Err(error)) => Outcome::failed(&error, &self.journal),
            None => Outcome::Dropped,
        }
    }

    fn count_lost(&self) -> usize {
        let guards = self.guards.iter().filter(|guard| guard.is_lost()).count();
        let session = Session::current().or_else(|| self.session.clone());
        guards + usize::from(session.is_some_and(|session| session.is_lost()))
    }

    fn take(&mut self, nth: usize) -> Option<LockGuard> {
        let nth = nth.checked_rem(self.guards.len())?;
        Some(self.guards.remove(nth))
    }

    fn named(&self, name: Name) -> Lock {
        let lock = self.locks[name.key].clone();
        match name.mode {
            LockMode::Exclusive => lock,
            LockMode::Shared => lock.shared(),
        }
    }

    fn tell(&self, depth: usize, outcome: Outcome) {
        let told = self.outcomes.unbounded_send((self.owner, depth, outcome));
        told.expect("somebody listens until the task is over");
    }
}
