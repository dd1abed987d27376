use std::{
    env,
    io::{Write as _, stderr},
    process::{self, Command},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use super::binaries;

/// Set, it makes a failure of what is otherwise passed over: that this system has no namespaces.
const REQUIRED: &str = "ADVISORY_REQUIRE_NETNS";

/// Another host, as far as the network is concerned: a network namespace, at the other end of a
/// wire of its own. It goes away with its drop.
#[derive(Debug)]
pub struct Host {
    name: String,
    /// The third and fourth number of its network's addresses.
    network: u32,
}

impl Host {
    /// Sets up a host. `None`, with a loud word on standard error, where that is not permitted;
    /// whoever cannot have that sets `ADVISORY_REQUIRE_NETNS=1`.
    ///
    /// # Panics
    ///
    /// If it cannot be set up, and `ADVISORY_REQUIRE_NETNS` is set.
    #[must_use]
    pub fn set_up() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        let host = Self {
            name: format!("adv{}-{number}", process::id() % 1_000_000),
            network: (process::id() * 8 + number) * 4 % 65_536,
        };
        match host.wire_up() {
            Ok(()) => Some(host),
            Err(reason) => {
                assert!(
                    env::var_os(REQUIRED).is_none(),
                    "{REQUIRED} is set, and there is no other host: {reason}"
                );
                // Not by a macro, whose output the test harness would keep to itself.
                let _ = writeln!(
                    stderr(),
                    "\n*** NOT TESTED: a host that vanishes. No network namespace can be made here \
                     (it takes root and iproute2): {reason}\n"
                );
                None
            }
        }
    }

    /// The address by which it reaches this one.
    #[must_use]
    pub fn gateway(&self) -> String {
        self.address(1)
    }

    /// A command that is run on it.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = ip();
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Cuts its wire. Nobody is told, on neither side.
    ///
    /// # Panics
    ///
    /// If that is not possible.
    pub fn vanish(&self) {
        self.inside(&["link", "set", "wire", "down"])
            .expect("the wire is ours");
    }

    fn wire_up(&self) -> Result<(), String> {
        let (name, here) = (self.name.as_str(), self.wire());
        run(&["netns", "add", name])?;
        run(&[
            "link", "add", here, "type", "veth", "peer", "name", "wire", "netns", name,
        ])?;
        run(&[
            "addr",
            "add",
            &format!("{}/30", self.address(1)),
            "dev",
            here,
        ])?;
        run(&["link", "set", here, "up"])?;
        self.inside(&[
            "addr",
            "add",
            &format!("{}/30", self.address(2)),
            "dev",
            "wire",
        ])?;
        self.inside(&["link", "set", "wire", "up"])
    }

    fn inside(&self, arguments: &[&str]) -> Result<(), String> {
        let netns = ["-n", &self.name];
        run(&[&netns, arguments].concat())
    }

    /// The end of the wire on this side.
    fn wire(&self) -> &str {
        &self.name
    }

    fn address(&self, number: u32) -> String {
        let [_, _, third, fourth] = (self.network + number).to_be_bytes();
        format!("10.213.{third}.{fourth}")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // What was never made cannot be deleted, which is fine.
        let _ = run(&["link", "del", self.wire()]);
        let _ = run(&["netns", "del", &self.name]);
    }
}

fn run(arguments: &[&str]) -> Result<(), String> {
    let output = ip().args(arguments).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("ip {}: {said}", arguments.join(" ")))
}

/// `ip`, as root. It may be in a folder that is not in everybody's `PATH`.
fn ip() -> Command {
    let mut command = if binaries::is_root() {
        Command::new("env")
    } else {
        let mut command = Command::new("sudo");
        command.args(["-n", "env"]);
        command
    };
    let path = env::var("PATH").unwrap_or_default();
    command.arg(format!("PATH={path}:/usr/sbin:/sbin"));
    command.arg("ip");
    command
}
