//! Tasks that take locks, and how many they took.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{cpu, rivals::Rival, stats::percentile};

/// How long nobody may get anything done. Then they have stalled.
const STALL: Duration = Duration::from_secs(3);

/// What tasks do, all of them the same.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) tasks: usize,
    /// How many keys they share.
    pub(crate) keys: usize,
    pub(crate) step: Step,
    /// What is held all the while, on a connection besides.
    pub(crate) held: Range<i64>,
    pub(crate) holder: Holder,
}

/// Who holds locks besides.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Holder {
    /// The rival under load.
    Itself,
    /// Another one of its kind, with a pool of its own, as another process would have.
    Another,
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
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    /// How long each step took, in microseconds.
    steps: Vec<f64>,
    elapsed: Duration,
    /// What this process has used, the server not counted.
    cpu: Duration,
}

impl Load {
    /// How many turns make a round.
    ///
    /// The shorter they are the more evenly everybody is hit by what else the machine does. But many
    /// tasks take a while to get going.
    pub(crate) fn turns(&self) -> u32 {
        if self.tasks > 16 { 2 } else { 20 }
    }

    /// Runs the tasks until the time is over; `None` if they stall. The keys begin with `first`.
    pub(crate) async fn run(
        &self,
        rival: &Arc<dyn Rival>,
        first: i64,
        time: Duration,
    ) -> Option<Done> {
        let cpu_before = cpu::time();
        let started = Instant::now();
        let progress = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for task in 0..self.tasks {
            let rival = Arc::clone(rival);
            let progress = Arc::clone(&progress);
            let key = first + (task % self.keys) as i64;
            let step = self.step;
            tasks.spawn(async move {
                let mut steps = Vec::new();
                while started.elapsed() < time {
                    let begun = Instant::now();
                    step.take(&*rival, key).await;
                    steps.push(begun.elapsed().as_secs_f64() * 1e6);
                    progress.fetch_add(1, Relaxed);
                }
                steps
            });
        }
        let mut steps = Vec::new();
        let mut seen = 0;
        loop {
            match timeout(STALL, tasks.join_next()).await {
                Ok(Some(ended)) => steps.extend(ended.expect("no rival fails")),
                Ok(None) => break,
                Err(_) => {
                    let now = progress.load(Relaxed);
                    if now == seen {
                        return None;
                    }
                    seen = now;
                }
            }
        }
        Some(Done {
            steps,
            elapsed: started.elapsed(),
            cpu: cpu::time().saturating_sub(cpu_before),
        })
    }
}

impl Done {
    pub(crate) fn add(&mut self, more: Self) {
        self.steps.extend(more.steps);
        self.elapsed += more.elapsed;
        self.cpu += more.cpu;
    }

    /// Steps of all tasks.
    pub(crate) fn per_second(&self) -> f64 {
        self.steps.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// What such a part of the steps did not exceed.
    pub(crate) fn percentile(&self, part: f64) -> Option<f64> {
        let mut steps = self.steps.clone();
        steps.sort_by(f64::total_cmp);
        percentile(&steps, part)
    }

    /// What a step costs this process, in microseconds.
    pub(crate) fn cpu(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.steps.len() as f64
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
