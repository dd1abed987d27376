use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Mutex, PoisonError},
};

use super::binaries;

/// The name that the scripts give to the log of what they own.
const SERVER_LOG: &str = "server.log";

/// The process that owns a server, or what else runs beside the tests, so that it ends when the test
/// process does.
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
    /// Starts the process, which makes what this script says.
    pub(super) fn start(script: &str, arguments: &[&OsStr]) -> Self {
        let mut process = Process::spawn(script, arguments);
        let folder = PathBuf::from(process.line());
        let supervisor = Self {
            folder,
            process: Mutex::new(process),
        };
        let made = supervisor.lock().line();
        assert_eq!(made, "ok", "it cannot be made:\n{}", supervisor.setup_log());
        supervisor
    }

    /// The folder that everything of it is in.
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

    /// What it has logged.
    pub(super) fn server_log(&self) -> String {
        self.read(SERVER_LOG)
    }

    /// Where it logs.
    pub(super) fn log_file(&self) -> PathBuf {
        self.folder.join(SERVER_LOG)
    }

    /// What the programs have said that make and command it.
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
    fn spawn(script: &str, arguments: &[&OsStr]) -> Self {
        let script = format!("{script}\n{}", include_str!("supervisor.sh"));
        let mut command = if binaries::is_root() {
            // PostgreSQL and PgBouncer refuse to run as root.
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--", "sh"]);
            command
        } else {
            Command::new("sh")
        };
        let mut child = command
            .args(["-c", &script, "advisory"])
            .args(arguments)
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
