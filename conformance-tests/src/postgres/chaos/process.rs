use std::{
    env,
    io::{BufRead as _, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    clock::now,
    journal::{Event, Journal},
    worker::{SEED, URL},
};

/// How long a worker may take to end. Its tasks may wait for what others hold.
const FAREWELL: Duration = Duration::from_secs(60);

/// The process of a worker. It is killed with its drop.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// Closing it is the order to end.
    input: Option<ChildStdin>,
    listener: Option<JoinHandle<()>>,
    journal: Arc<Mutex<Journal>>,
}

impl Process {
    /// Starts a worker by running one of this binary's tests.
    pub(super) fn start(test: &str, url: &str, seed: u64, journal: Arc<Mutex<Journal>>) -> Self {
        let program = env::current_exe().expect("a test binary");
        let mut child = Command::new(program)
            .args([test, "--exact", "--nocapture"])
            .env(URL, url)
            .env(SEED, seed.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the test binary starts");
        let output = child.stdout.take().expect("it is piped");
        let heard = Arc::clone(&journal);
        Self {
            input: child.stdin.take(),
            listener: Some(thread::spawn(move || listen(output, &heard))),
            child,
            journal,
        }
    }

    /// Has it not run until it is told to [go on](Self::go_on).
    pub(super) fn stop(&self) {
        self.signal(Signal::STOP);
    }

    pub(super) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// As `kill -9` does.
    pub(super) fn kill(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it was ours");
        let killed = now();
        self.hear_out();
        lock(&self.journal).killed = Some(killed);
    }

    /// Has its tasks end, and waits for that.
    ///
    /// # Panics
    ///
    /// If it fails. One that does not end in time is killed, and has acquisitions that never ended.
    pub(super) fn finish(mut self) {
        self.input = None;
        let asked = Instant::now();
        let status = loop {
            match self.child.try_wait().expect("it is ours") {
                Some(status) => break status,
                None if asked.elapsed() > FAREWELL => return,
                None => thread::sleep(Duration::from_millis(10)),
            }
        };
        self.hear_out();
        assert!(status.success(), "a worker has failed: {status}");
    }

    /// Hears the rest of what it has said.
    fn hear_out(&mut self) {
        if let Some(listener) = self.listener.take() {
            listener.join().expect("it says nothing that is no event");
        }
    }

    fn signal(&self, signal: Signal) {
        let sent = kill_process(Pid::from_child(&self.child), signal);
        sent.expect("it is ours, and not waited for");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(output: ChildStdout, journal: &Mutex<Journal>) {
    let mut output = BufReader::new(output);
    let mut line = String::new();
    while output.read_line(&mut line).is_ok_and(|read| read > 0) {
        // Who is killed may have said half a line.
        if line.ends_with('\n')
            && let Some(event) = Event::read(&line)
        {
            lock(journal).hear(event);
        }
        line.clear();
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
