//! Ends the process group of a child when this process is killed. The kernel ends only the child itself.
//!
//! A second process of our program (`steno child --watch-group`) waits for the end of a pipe that only we hold. Before
//! a normal exit we write a byte to it, and it leaves the group alone: a child may leave processes running on purpose.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::ChildLauncher;

/// How long a group may take to end after `SIGTERM`.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(1);

/// A process that ends a group if this process is killed.
#[derive(Debug)]
pub struct GroupWatch(Child);

impl GroupWatch {
    /// Starts to watch the group with this id.
    pub fn start(launcher: &ChildLauncher, group: i32) -> io::Result<Self> {
        let mut watcher = Command::new(&launcher.program);
        watcher.args(&launcher.arguments).arg("--watch-group").arg(group.to_string());
        // In a group of its own, it gets none of the signals for ours.
        watcher.process_group(0);
        watcher.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        watcher.spawn().map(Self)
    }

    /// Watches the group that a child leads.
    pub fn watch_child(launcher: &ChildLauncher, child: &Child) -> io::Result<Self> {
        Self::start(launcher, i32::try_from(child.id()).map_err(io::Error::other)?)
    }

    /// Ends the watch without ending the group.
    pub fn dismiss(mut self) {
        if let Some(mut pipe) = self.0.stdin.take() {
            let _ = pipe.write_all(b".");
        }
        let _ = self.0.wait();
    }
}

/// Reads from `pipe`. If it closes without a byte, the process at the other end was killed, and the group is ended.
pub fn end_abandoned_group(pipe: &mut impl Read, group: i32) -> io::Result<()> {
    let Some(group) = Pid::from_raw(group) else { return Ok(()) };
    if pipe.read(&mut [0])? > 0 {
        return Ok(());
    }
    let until = Instant::now() + TERMINATE_TIMEOUT;
    let _ = kill_process_group(group, Signal::TERM);
    while test_kill_process_group(group).is_ok() && Instant::now() < until {
        thread::sleep(Duration::from_millis(10));
    }
    // The group may have ended already.
    let _ = kill_process_group(group, Signal::KILL);
    Ok(())
}
