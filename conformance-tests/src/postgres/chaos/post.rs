use std::{
    ops::Range,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use fastrand::Rng;
use futures::executor::block_on;

use super::{
    arena::Arena,
    clock::Span,
    fault::Fault,
    journal::Journal,
    process::{Process, lock},
};
use crate::postgres::{Point, Proxy};

/// How long a worker is left alone between two faults, in milliseconds.
const PAUSE: Range<u64> = 100..1500;

/// How long faults last that do, in milliseconds. A delay is no loss: it is over before the session
/// has been silent for long.
const DELAY: Range<u64> = 50..700;
const SILENCE: Range<u64> = 2500..4500;
const STOP: Range<u64> = 300..4000;

/// The post of a worker: its network, the worker itself, and whoever replaces it.
#[derive(Debug)]
pub(super) struct Post<'a> {
    arena: &'a Arena,
    /// The test that is a worker.
    test: &'a str,
    /// What the worker's sessions are called.
    application: String,
    rng: Rng,
    proxy: Proxy,
    worker: usize,
    journal: Arc<Mutex<Journal>>,
    process: Process,
}

impl<'a> Post<'a> {
    pub(super) fn new(arena: &'a Arena, test: &'a str, number: usize, mut rng: Rng) -> Self {
        let application = format!("chaos-{number}");
        let proxy = block_on(Proxy::to(&format!(
            "{}?application_name={application}",
            arena.database.url()
        )));
        let (worker, journal) = arena.admit();
        Self {
            process: Process::start(test, proxy.url(), rng.u64(..), Arc::clone(&journal)),
            arena,
            test,
            application,
            rng,
            proxy,
            worker,
            journal,
        }
    }

    /// Has one fault after the other strike the worker, and has it end when the time is over.
    pub(super) fn run(mut self) {
        while self.arena.pause(self.rng.u64(PAUSE)) {
            let fault = Fault::of_worker(&mut self.rng);
            match fault {
                Fault::Delayed => self.delay(fault),
                Fault::Silent | Fault::SilentAndTerminated => self.silence(fault),
                Fault::Stopped | Fault::StoppedAndTerminated => self.stop(fault),
                Fault::Killed => self.kill(fault),
                Fault::Cut => _ = self.strike(fault, || self.proxy.cut()),
                _ => _ = self.strike(fault, || self.arena.terminate(&self.application, 1)),
            }
        }
        self.process.finish();
    }

    fn delay(&mut self, fault: Fault) {
        let lasts = self.lasts(DELAY);
        let span = self.strike(fault, || {
            let late = self.proxy.stop(Point::answer(READY));
            thread::sleep(lasts);
            late.go_on();
        });
        // It may hide the end of the connection for so long.
        lock(&self.journal).silent.push(span);
    }

    fn silence(&mut self, fault: Fault) {
        let lasts = self.lasts(SILENCE);
        let span = self.strike(fault, || {
            self.proxy.silence();
            self.terminate_with(fault);
            thread::sleep(lasts);
            // In this order no connection is left that nobody would ever answer.
            self.proxy.speak();
            self.proxy.cut();
        });
        lock(&self.journal).silent.push(span);
    }

    fn stop(&mut self, fault: Fault) {
        let lasts = self.lasts(STOP);
        self.strike(fault, || {
            self.process.stop();
            let (span, ()) = Span::of(|| {
                self.terminate_with(fault);
                thread::sleep(lasts);
            });
            self.process.go_on();
            lock(&self.journal).stopped.push(span);
        });
    }

    fn kill(&mut self, fault: Fault) {
        self.arena
            .strike(fault, Some(self.worker), || self.process.kill());
        (self.worker, self.journal) = self.arena.admit();
        let (seed, journal) = (self.rng.u64(..), Arc::clone(&self.journal));
        self.process = Process::start(self.test, self.proxy.url(), seed, journal);
    }

    fn strike(&self, fault: Fault, happens: impl FnOnce()) -> Span {
        self.arena.strike(fault, Some(self.worker), happens)
    }

    fn terminate_with(&self, fault: Fault) {
        if fault.terminates_all() {
            self.arena.terminate(&self.application, u32::MAX);
        }
    }

    fn lasts(&mut self, millis: Range<u64>) -> Duration {
        Duration::from_millis(self.rng.u64(millis))
    }
}

/// The message by which the server ends each of its answers.
const READY: u8 = b'Z';
