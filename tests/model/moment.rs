//! What is to be seen of a program that is played.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::{
    journal::Tag,
    outcome::Outcome,
    program::{Name, Step},
};

/// What is to be seen once a step has had its effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    /// What has come of the step, and of waits that it ended, by owner.
    pub(crate) outcomes: BTreeMap<usize, Vec<Outcome>>,
    pub(crate) held: BTreeSet<SeenName>,
    pub(crate) waiting: BTreeSet<SeenName>,
    /// Owners that wait for themselves, which the server does not see.
    pub(crate) waiting_inside: BTreeSet<usize>,
    /// Set if the step did not come to rest.
    pub(crate) restless: bool,
}

/// A lock of the program, and the session of a task that has it or wants it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SeenName {
    pub(crate) session: Option<Tag>,
    pub(crate) name: Name,
}

/// What a moment came after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Step(usize, Step),
    /// The wait of an owner that had not ended was ended by force.
    Unstuck(usize),
    End,
}

/// Says where the two ways differ that a program went, if they do.
pub(crate) fn difference(double: &[(At, Moment)], server: &[(At, Moment)]) -> Result<(), String> {
    let longest = double.len().max(server.len());
    for nth in 0..longest {
        let (ours, theirs) = (double.get(nth), server.get(nth));
        if ours != theirs {
            return Err(format!("the double: {ours:#?}\nthe server: {theirs:#?}"));
        }
        if ours.is_some_and(|(_, moment)| moment.restless) {
            return Err(format!("neither comes to rest: {ours:#?}"));
        }
    }
    Ok(())
}

/// `1.1: 2 shared`: the first session of owner 1, key 2.
impl fmt::Debug for SeenName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.session {
            Some(session) => write!(f, "{session:?}: {:?}", self.name),
            None => write!(f, "nobody: {:?}", self.name),
        }
    }
}
