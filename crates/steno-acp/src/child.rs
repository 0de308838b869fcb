//! Child processes: they have the limits that we began with, get our signals, and end when we are killed.
//!
//! Only a process itself can ask the kernel to end it with its parent, and only it can change its limits before its program
//! begins. So our own program is started, does that, and becomes the child (`steno child`).

#[cfg(not(unix))]
mod elsewhere;
mod limits;
mod pipes;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod watch;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;

#[cfg(not(unix))]
pub use self::elsewhere::{
    CaughtSignals, GroupWatch, die_from_signal, end_abandoned_group, kill_group, signal_of,
    terminate_group,
};
pub use self::limits::raise_open_file_limit;
pub(crate) use self::pipes::{close_stdin, close_stdout, pipe_file, stdin_file, stdout_file};
#[cfg(unix)]
pub use self::signals::{CaughtSignals, die_from_signal, kill_group, signal_of, terminate_group};
#[cfg(unix)]
pub use self::watch::{GroupWatch, end_abandoned_group};

/// Starts child processes.
#[derive(Clone, Debug)]
pub struct ChildLauncher {
    /// The program that calls [`become_child`] when it is given `arguments`, those of [`ChildSetup`], `--` and the
    /// child's command.
    pub program: PathBuf,
    /// What it is given first.
    pub arguments: Vec<OsString>,
}

/// What a child process does before its program begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChildSetup {
    /// Ends with this process.
    pub parent: Option<i32>,
    /// May open so many files.
    pub open_files: Option<u64>,
}

/// The process group that a child is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildGroup {
    /// Ours: what is typed at a terminal reaches both.
    Shared,
    /// One of its own, with all that it starts.
    Own,
}

impl ChildLauncher {
    /// The command that runs a child process, which ends when we are killed.
    pub fn command(&self, command: &[OsString], group: ChildGroup) -> Command {
        let parent = i32::try_from(std::process::id()).ok().filter(|_| cfg!(target_os = "linux"));
        let open_files = limits::original_open_file_limit();
        let mut launched = self.prepared(command, ChildSetup { parent, open_files });
        #[cfg(unix)]
        if group == ChildGroup::Own {
            std::os::unix::process::CommandExt::process_group(&mut launched, 0);
        }
        #[cfg(not(unix))]
        let _ = group;
        launched
    }

    /// The command that runs a program which may outlive us.
    pub fn detached_command(&self, command: &[OsString]) -> Command {
        let open_files = limits::original_open_file_limit();
        self.prepared(command, ChildSetup { parent: None, open_files })
    }

    fn prepared(&self, command: &[OsString], setup: ChildSetup) -> Command {
        if setup == ChildSetup::default() {
            let mut plain = Command::new(&command[0]);
            plain.args(&command[1..]);
            return plain;
        }
        let mut launched = Command::new(&self.program);
        launched.args(&self.arguments);
        if let Some(parent) = setup.parent {
            launched.arg("--parent").arg(parent.to_string());
        }
        if let Some(open_files) = setup.open_files {
            launched.arg("--open-files").arg(open_files.to_string());
        }
        launched.arg("--").args(command);
        launched
    }
}

/// Sets this process up and becomes the child; returns only if that fails.
#[cfg(unix)]
pub fn become_child(setup: ChildSetup, command: &[OsString]) -> io::Error {
    use std::os::unix::process::CommandExt;
    if let Some(parent) = setup.parent
        && let Err(error) = end_with(parent)
    {
        return error;
    }
    if let Some(open_files) = setup.open_files {
        limits::set_open_file_limit(open_files);
    }
    Command::new(&command[0]).args(&command[1..]).exec()
}

/// No process can become another one here.
#[cfg(not(unix))]
pub fn become_child(_: ChildSetup, _: &[OsString]) -> io::Error {
    io::ErrorKind::Unsupported.into()
}

/// Asks the kernel to kill this process when `parent` ends.
#[cfg(target_os = "linux")]
fn end_with(parent: i32) -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have ended before we asked.
    match getppid().map(|pid| pid.as_raw_nonzero().get()) {
        Some(pid) if pid == parent => Ok(()),
        _ => Err(io::Error::other("the process that waits for it has ended")),
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn end_with(_: i32) -> io::Result<()> {
    Ok(())
}
