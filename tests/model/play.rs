//! Plays a program on a server, and writes down what comes of each step.

mod cast;
mod kill;
mod rest;
mod rules;

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use advisory::{LockKey, spi::Claim};
use futures::{
    channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded},
    future::{Either, join_all, select},
};

use crate::{
    journal::{Journal, Tag},
    moment::{At, Moment},
    outcome::Outcome,
    program::{Action, Kind, Program, Turns},
    server::{Seen, Server},
    stop::Stop,
    task::{Command, Task},
};

/// Plays the program; one moment for each of its steps that applied, and for those of its end.
pub(crate) async fn play(program: &Program, run: i32, server: &dyn Server) -> Vec<(At, Moment)> {
    let (outcome_sender, outcomes) = unbounded();
    let mut player = Player::new(program, server, outcomes);
    let tasks = player.cast(program, run, outcome_sender).await;
    let playing = pin!(player.play(program));
    // Tasks come to their end only when the program has, unless something is wrong with them.
    match select(playing, join_all(tasks.into_iter().map(Task::run))).await {
        Either::Left((moments, _)) => moments,
        Either::Right((_, playing)) => playing.await,
    }
}

/// How long anything may take that is sure to come: a wait that nobody is left for may take a turn
/// of the double, which is a second, or more behind readers.
const DEADLINE: Duration = Duration::from_secs(5);

/// How long before the next look, if the last one was not the last.
const PAUSE: Duration = Duration::from_millis(1);

struct Player<'a> {
    server: &'a dyn Server,
    turns: Turns,
    journal: Arc<Journal>,
    keys: Vec<LockKey>,
    roles: Vec<Role>,
    outcomes: UnboundedReceiver<(usize, usize, Outcome)>,
    /// What has been heard since the last moment.
    heard: BTreeMap<usize, Vec<Outcome>>,
    /// How things stood at the last moment.
    look: Vec<Seen>,
    waiting_inside: BTreeSet<usize>,
    /// Waits that their owners had dropped at the last moment.
    lingering: BTreeSet<(Tag, Claim)>,
    killed: BTreeSet<Tag>,
}

/// The player's side of a task.
struct Role {
    kind: Kind,
    commands: UnboundedSender<Command>,
    stop: Arc<Stop>,
    /// How many sections it is in.
    depth: usize,
    /// What it was told and has not come to an end with.
    at: Option<Command>,
    /// How much of what it has it knew to be lost when it was last asked.
    lost: usize,
}

impl<'a> Player<'a> {
    fn new(
        program: &Program,
        server: &'a dyn Server,
        outcomes: UnboundedReceiver<(usize, usize, Outcome)>,
    ) -> Self {
        Self {
            server,
            turns: program.turns,
            journal: Arc::default(),
            keys: Vec::new(),
            roles: Vec::new(),
            outcomes,
            heard: BTreeMap::new(),
            look: Vec::new(),
            waiting_inside: BTreeSet::new(),
            lingering: BTreeSet::new(),
            killed: BTreeSet::new(),
        }
    }

    async fn play(mut self, program: &Program) -> Vec<(At, Moment)> {
        let mut moments = Vec::new();
        for number in 0..program.steps.len() {
            let step = program.step(number);
            if self.step(step.owner, step.action).await {
                moments.push((At::Step(number, step), self.rest().await));
                if moments.last().is_some_and(|(_, moment)| moment.restless) {
                    return moments;
                }
            }
        }
        for owner in 0..self.roles.len() {
            if self.roles[owner].at.is_some() || self.lingers(owner) {
                self.unstick(owner).await;
                moments.push((At::Unstuck(owner), self.rest().await));
            }
        }
        for owner in 0..self.roles.len() {
            self.tell(owner, Command::Quit);
        }
        moments.push((At::End, self.rest().await));
        moments
    }

    /// Begins a step; whether it applies.
    async fn step(&mut self, owner: usize, action: Action) -> bool {
        if let Action::Kill(nth) = action {
            return self.kill(owner, nth).await;
        }
        if self.roles[owner].at.is_some() {
            let cancels = action == Action::Cancel && self.may_cancel(owner);
            if cancels {
                self.roles[owner].stop.request();
            }
            return cancels;
        }
        if self.lingers(owner) {
            return false;
        }
        let command = match action {
            Action::Lock(name, patience) => self
                .permitted(owner, name, patience)
                .map(|patience| Command::Lock(name, patience)),
            Action::Enter(name, patience) => self
                .permitted(owner, name, patience)
                .map(|patience| Command::Enter(name, patience)),
            Action::Release(nth) => Some(Command::Release(nth)),
            Action::Drop(nth) => Some(Command::Drop(nth)),
            Action::Leave => Some(Command::Leave),
            Action::Abandon => Some(Command::Abandon),
            Action::Cancel | Action::Kill(_) => None,
        };
        if let Some(command) = command {
            self.tell(owner, command);
        }
        command.is_some()
    }

    /// Waits until it is so, or for as long as anything may take.
    async fn until(&mut self, mut is_so: impl AsyncFnMut(&mut Self) -> bool) -> bool {
        let started = Instant::now();
        while !is_so(self).await {
            if started.elapsed() > DEADLINE {
                return false;
            }
            tokio::time::sleep(PAUSE).await;
        }
        true
    }

    fn tell(&mut self, owner: usize, command: Command) {
        self.journal.turn_to(owner);
        let role = &mut self.roles[owner];
        role.at = Some(command);
        let told = role.commands.unbounded_send(command);
        told.expect("the task listens until it is to quit");
    }

    /// Takes down what has come to an end; whether anything has.
    fn hear(&mut self) -> bool {
        let mut any = false;
        while let Ok((owner, depth, outcome)) = self.outcomes.try_recv() {
            any = true;
            let role = &mut self.roles[owner];
            role.depth = depth;
            // Sections end before the task that is to quit does.
            if !matches!(role.at, Some(Command::Quit)) || outcome == Outcome::Over {
                role.at = None;
            }
            match outcome {
                Outcome::Lost(count) => role.lost = count,
                _ => self.heard.entry(owner).or_default().push(outcome),
            }
        }
        any
    }

    /// What the owner waits for, or has left behind waiting.
    fn wait_of(&self, owner: usize) -> Option<&Seen> {
        let mut waiting = self.look.iter().filter(|seen| !seen.granted);
        waiting.find(|seen| self.owner_of(seen) == Some(owner))
    }

    fn owner_of(&self, seen: &Seen) -> Option<usize> {
        self.journal.tag(seen.session).map(|tag| tag.owner)
    }
}
