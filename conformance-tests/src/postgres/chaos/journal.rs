use std::{
    collections::BTreeMap,
    io::{Write as _, stdout},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::clock::Span;

/// What stands before an event in a line; the test harness may have begun the line with a word of
/// its own.
const MARK: &str = "chaos: ";

/// Names an acquisition of one worker.
pub(super) type AcquisitionId = u64;

/// What a worker says about one of its acquisitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Event {
    pub(super) acquisition: AcquisitionId,
    pub(super) what: What,
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum What {
    Asks,
    /// Its section begins.
    Enters {
        key: u8,
        /// The acquisition whose section is around this one.
        within: Option<AcquisitionId>,
        at: Duration,
    },
    Fenced {
        token: i64,
    },
    /// Its section has returned, or has been dropped.
    Leaves {
        at: Duration,
    },
    Ends {
        outcome: Outcome,
    },
}

/// How an acquisition ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub(super) enum Outcome {
    /// It was held from the section's begin to its end: the library says so.
    Held,
    /// Somebody else had it.
    Missed,
    TimedOut,
    Deadlocked,
    /// The lock was lost, and the section stopped.
    Stopped,
    /// The lock was lost, which was seen when the section had come to its end.
    Completed,
    /// The lock was lost before the section began, or while a guard was looked after.
    Lost,
    /// There was no session to be had, or it broke.
    Failed,
    /// The section around it was stopped.
    Dropped,
}

impl Event {
    /// Tells it to the process that has started this one.
    pub(super) fn tell(self) {
        let event = serde_json::to_string(&self).expect("nothing in it has no form in JSON");
        let mut output = stdout().lock();
        // Where nobody listens any more the test has ended, and this process is about to.
        let _ = writeln!(output, "{MARK}{event}").and_then(|()| output.flush());
    }

    /// Finds the event in a line of output, if there is one.
    pub(super) fn read(line: &str) -> Option<Self> {
        let (_, event) = line.split_once(MARK)?;
        Some(serde_json::from_str(event).unwrap_or_else(|error| panic!("{error}: {line}")))
    }
}

/// All that is known of one worker.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    pub(super) acquisitions: BTreeMap<AcquisitionId, Acquisition>,
    /// When the process did not run.
    pub(super) stopped: Vec<Span>,
    /// When its network carried nothing, without a word.
    pub(super) silent: Vec<Span>,
    /// When the process was killed.
    pub(super) killed: Option<Duration>,
}

/// What is known of an acquisition.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acquisition {
    pub(super) entered: Option<Entered>,
    pub(super) token: Option<i64>,
    pub(super) left: Option<Duration>,
    pub(super) outcome: Option<Outcome>,
}

/// How its section began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entered {
    pub(super) key: u8,
    pub(super) within: Option<AcquisitionId>,
    pub(super) at: Duration,
}

impl Journal {
    pub(super) fn hear(&mut self, event: Event) {
        let acquisition = self.acquisitions.entry(event.acquisition).or_default();
        match event.what {
            What::Asks => {}
            What::Enters { key, within, at } => {
                acquisition.entered = Some(Entered { key, within, at });
            }
            What::Fenced { token } => acquisition.token = Some(token),
            What::Leaves { at } => acquisition.left = Some(at),
            What::Ends { outcome } => acquisition.outcome = Some(outcome),
        }
    }
}

#[test]
fn an_event_is_read_out_of_a_line() {
    let event = Event {
        acquisition: 7,
        what: What::Leaves {
            at: Duration::new(3, 141_592_653),
        },
    };
    let said = serde_json::to_string(&event).unwrap();
    let line = format!("test worker ... {MARK}{said}\n");
    assert_eq!(Event::read(&line), Some(event));
    assert_eq!(Event::read("running 1 test\n"), None);
}
