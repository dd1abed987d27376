//! Tasks that take locks, and how many they took.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{cpu, rivals::Rival, stats::percentile};

/// How long tasks may take to come to an end after their time. Who takes longer has stalled.
const GRACE: Duration = Duration::from_secs(2);

/// What tasks do, all of them the same.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) tasks: usize,
    /// How many keys they share.
    pub(crate) keys: usize,
    pub(crate) step: Step,
    /// What the rival holds all the while, on a connection besides.
    pub(crate) held: Range<i64>,
}

/// What a task does over and over again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Acquires, works, and releases.
    Cycle(Work),
    /// Tries in vain.
    Miss,
}

/// What is done while a lock is held.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    Nothing,
    Sleep(Duration),
    /// A query on the rival's own pool.
    Query,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    /// Steps of all tasks.
    pub(crate) per_second: f64,
    /// What 99 of 100 steps did not exceed, in microseconds.
    pub(crate) slowest: f64,
    /// What a step costs this process, the server not counted, in microseconds.
    pub(crate) cpu: Option<f64>,
}

impl Load {
    /// Runs the tasks until the time is over; `None` if they stall.
    pub(crate) async fn run(&self, rival: &Arc<dyn Rival>, time: Duration) -> Option<Done> {
        let cpu_before = cpu::time();
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for task in 0..self.tasks {
            let rival = Arc::clone(rival);
            let key = (task % self.keys) as i64;
            let step = self.step;
            tasks.spawn(async move {
                let mut steps = Vec::new();
                while started.elapsed() < time {
                    let begun = Instant::now();
                    step.take(&*rival, key).await;
                    steps.push(begun.elapsed().as_secs_f64() * 1e6);
                }
                steps
            });
        }
        let mut steps = timeout(time + GRACE, tasks.join_all()).await.ok()?.concat();
        let elapsed = started.elapsed();
        let cpu = cpu::time().zip(cpu_before).map(|(after, before)| {
            let used = after.saturating_sub(before);
            used.as_secs_f64() * 1e6 / steps.len() as f64
        });
        steps.sort_by(f64::total_cmp);
        Some(Done {
            per_second: steps.len() as f64 / elapsed.as_secs_f64(),
            slowest: percentile(&steps, 0.99)?,
            cpu,
        })
    }
}

impl Step {
    async fn take(self, rival: &dyn Rival, key: i64) {
        match self {
            Self::Cycle(work) => rival.cycle(key, &|| work.run(rival)).await,
            Self::Miss => assert!(!rival.try_lock(key).await, "somebody else has it"),
        }
    }
}

impl Work {
    fn run(self, rival: &dyn Rival) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            match self {
                Self::Nothing => {}
                Self::Sleep(time) => sleep(time).await,
                Self::Query => rival.query().await,
            }
        })
    }
}
