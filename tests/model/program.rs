//! What the owners of locks do, one step at a time.

use std::{fmt, time::Duration};

use advisory::{Lock, LockManager, LockMode};
use proptest::{collection::vec, prelude::*};

/// How many keys there are at most. Few, so that owners meet.
const KEYS: usize = 4;

/// How many owners there are at most.
const OWNERS: usize = 4;

/// A program: its owners, and what they do.
#[derive(Clone)]
pub(crate) struct Program {
    /// Whether all owners use one manager, which then knows without asking who holds what, or each
    /// has one of its own, as a process of its own would.
    pub(crate) managers: Managers,
    pub(crate) turns: Turns,
    pub(crate) owners: Vec<Kind>,
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Managers {
    OneForAll,
    OneEach,
}

/// How long the turns are that a wait goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turns {
    /// So long that none ends during a program. Each wait keeps its place in the queue, so who is
    /// granted what, and when, can be told for any number of waiters; and so can a deadlock's
    /// victim, which is the wait that came last.
    Endless,
    /// As in earnest. A waiter leaves the queue for an instant again and again, and who comes next
    /// is not to be foretold; so nobody asks for a key that somebody waits for, and only those who
    /// hold nothing wait.
    Natural,
}

/// What takes its locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A task on a session that it holds in its hand.
    Session,
    /// A task without one: each guard and each section is an owner of its own.
    Task,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) owner: usize,
    pub(crate) action: Action,
}

/// What an owner does, or what is done to it. What makes no sense at the moment is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Takes a lock for a guard.
    Lock(Name, Patience),
    /// Releases one of the guards that it has, counted round.
    Release(usize),
    /// Drops one of them.
    Drop(usize),
    /// Takes a lock for a section, and goes on inside it.
    Enter(Name, Patience),
    /// Comes to the end of the innermost section.
    Leave,
    /// Drops the innermost section as it stands.
    Abandon,
    /// Drops its wait.
    Cancel,
    /// One of its sessions that hold or wait is ended by force, counted round.
    Kill(usize),
}

/// How long a lock is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// It is tried for.
    None,
    Limit(Duration),
    Unlimited,
}

impl Patience {
    /// Over before anything is asked a second time.
    pub(crate) const ZERO: Self = Self::Limit(Duration::ZERO);
    /// Long enough to be queued.
    pub(crate) const SHORT: Self = Self::Limit(Duration::from_millis(15));
}

/// A key and a mode, as a program names them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) key: usize,
    pub(crate) mode: LockMode,
}

impl Program {
    pub(crate) fn strategy() -> impl Strategy<Value = Self> {
        prop_oneof![2 => Self::mixed(), 1 => Self::tangled()]
    }

    /// Everything that there is.
    fn mixed() -> impl Strategy<Value = Self> {
        let turns = prop_oneof![3 => Just(Turns::Endless), 1 => Just(Turns::Natural)];
        let kind = prop_oneof![Just(Kind::Task), Just(Kind::Session)];
        let owners = vec(kind, 2..=OWNERS);
        let steps = (1..=KEYS).prop_flat_map(|keys| vec(step(any_action(keys)), 1..40));
        Self::of(turns, owners, steps)
    }

    /// Sessions that wait for each other, so that there are cycles of all kinds.
    fn tangled() -> impl Strategy<Value = Self> {
        let action = prop_oneof![
            6 => name(3).prop_map(|name| Action::Lock(name, Patience::Unlimited)),
            1 => nth().prop_map(Action::Release),
        ];
        let owners = vec(Just(Kind::Session), 3..=OWNERS);
        Self::of(Just(Turns::Endless), owners, vec(step(action), 1..20))
    }

    /// A step, for one of the owners that there are.
    pub(crate) fn step(&self, number: usize) -> Step {
        let Step { owner, action } = self.steps[number];
        let owner = owner % self.owners.len();
        Step { owner, action }
    }

    fn of(
        turns: impl Strategy<Value = Turns>,
        owners: impl Strategy<Value = Vec<Kind>>,
        steps: impl Strategy<Value = Vec<Step>>,
    ) -> impl Strategy<Value = Self> {
        let managers = prop_oneof![Just(Managers::OneEach), Just(Managers::OneForAll)];
        let parts = (managers, turns, owners, steps);
        parts.prop_map(|(managers, turns, owners, steps)| {
            // Tasks of one manager queue up before they ask, and pass their sessions on. What comes
            // of that is no server's doing.
            let queue_up = owners.iter().any(|owner| matches!(owner, Kind::Task));
            Self {
                managers: if queue_up {
                    Managers::OneEach
                } else {
                    managers
                },
                turns,
                owners,
                steps,
            }
        })
    }
}

fn step(action: impl Strategy<Value = Action>) -> impl Strategy<Value = Step> {
    (0..OWNERS, action).prop_map(|(owner, action)| Step { owner, action })
}

fn any_action(keys: usize) -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => (name(keys), patience()).prop_map(|(name, how)| Action::Lock(name, how)),
        7 => nth().prop_map(Action::Release),
        2 => nth().prop_map(Action::Drop),
        4 => (name(keys), patience()).prop_map(|(name, how)| Action::Enter(name, how)),
        3 => Just(Action::Leave),
        2 => Just(Action::Abandon),
        2 => Just(Action::Cancel),
        1 => nth().prop_map(Action::Kill),
    ]
}

fn nth() -> impl Strategy<Value = usize> {
    0..6_usize
}

fn name(keys: usize) -> impl Strategy<Value = Name> {
    let mode = prop_oneof![3 => Just(LockMode::Exclusive), 2 => Just(LockMode::Shared)];
    (0..keys, mode).prop_map(|(key, mode)| Name { key, mode })
}

fn patience() -> impl Strategy<Value = Patience> {
    prop_oneof![
        5 => Just(Patience::Unlimited),
        3 => Just(Patience::None),
        1 => Just(Patience::ZERO),
        1 => Just(Patience::SHORT),
    ]
}

/// The locks of one run of a program, which no other run meets: two names in nested namespaces,
/// and one raw key of each space, of the same bits.
pub(crate) fn locks(manager: &LockManager, run: i32) -> [Lock; KEYS] {
    let bits = (i64::from(run) << 32) | 1;
    let outer = manager.namespace(format!("model:{run}"));
    [
        outer.named("digest"),
        manager.keyed(bits),
        manager.keyed((run, 1)),
        outer.namespace("inner").named("digest"),
    ]
}

/// One line for each step.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "managers: {:?}, turns: {:?}, ",
            self.managers, self.turns
        )?;
        write!(f, "owners: {:?}", self.owners)?;
        for number in 0..self.steps.len() {
            write!(f, "\n  step {number}: {:?}", self.step(number))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "owner {}: {:?}", self.owner, self.action)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.mode)
    }
}
