use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Mutex, PoisonError},
};

use super::binaries;

/// The name that the script gives to the server's log.
const SERVER_LOG: &str = "server.log";

/// The process that owns a server, so that the server ends when the test process does.
///
/// A shell script: it has to outlive a test process that is killed, and may hold none of its
/// memory or files.
#[derive(Debug)]
pub(super) struct Supervisor {
    folder: PathBuf,
    process: Mutex<Process>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    /// Closing it is the order to clean up.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Supervisor {
    /// Starts the process and makes a cluster: an empty one, or a standby's of the primary on this
    /// port.
    pub(super) fn start(primary: Option<u16>) -> Self {
        let mut process = Process::spawn(&binaries::folder(), primary);
        let folder = PathBuf::from(process.line());
        let supervisor = Self {
            folder,
            process: Mutex::new(process),
        };
        let made = supervisor.lock().line();
        assert_eq!(made, "ok", "no cluster:\n{}", supervisor.setup_log());
        supervisor
    }

    /// The folder that everything of the server is in.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Has a command run; whether it went well.
    pub(super) fn run(&self, command: &str) -> bool {
        let mut process = self.lock();
        let input = process.input.as_mut().expect("open until the drop");
        writeln!(input, "{command}").expect("the supervisor lives");
        process.line() == "ok"
    }

    /// What the server has logged.
    pub(super) fn server_log(&self) -> String {
        self.read(SERVER_LOG)
    }

    /// Where it logs.
    pub(super) fn log_file(&self) -> PathBuf {
        self.folder.join(SERVER_LOG)
    }

    /// What `initdb`, `pg_basebackup` and `pg_ctl` have said.
    pub(super) fn setup_log(&self) -> String {
        self.read("setup.log")
    }

    fn read(&self, file: &str) -> String {
        fs::read(self.folder.join(file))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let mut process = self.lock();
        process.input = None;
        // Whoever starts servers one after the other should not have all of them at once.
        let _ = process.child.wait();
    }
}

impl Process {
    fn spawn(binaries: &Path, primary: Option<u16>) -> Self {
        let script = include_str!("supervisor.sh");
        let mut command = if binaries::is_root() {
            // The server refuses to run as root.
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--", "sh"]);
            command
        } else {
            Command::new("sh")
        };
        let mut child = command
            .args(["-c", script, "advisory-postgres"])
            .arg(binaries)
            .args(primary.map(|port| port.to_string()))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Nobody who reads our output should have to wait for the clean-up.
            .stderr(Stdio::null())
            // Out of reach of a Ctrl-C, which would end it before its work is done.
            .process_group(0)
            .spawn()
            .expect("a shell, and runuser for root");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Self {
            child,
            input,
            output,
        }
    }

    /// The next line that the process says; empty if it has ended.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("lines of text");
        line.trim_end().to_owned()
    }
}
