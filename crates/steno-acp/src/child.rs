//! Child processes. They get the original resource limits and our signals, and end when this process is killed.
//!
//! Only a process itself can ask the kernel to end it with its parent, or change its limits before its program starts.
//! So our own program is started first, does both, and then becomes the child (`steno child`).

mod limits;
mod pipes;
#[cfg(unix)]
mod signals;
#[cfg(not(unix))]
mod unsupported;
#[cfg(unix)]
mod watch;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;

pub use self::limits::raise_open_file_limit;
pub(crate) use self::pipes::{close_stdin, close_stdout, pipe_file, stdin_file, stdout_file};
#[cfg(unix)]
pub use self::signals::{CaughtSignals, die_from_signal, exit_signal, kill_group, terminate_group};
#[cfg(not(unix))]
pub use self::unsupported::{
    UnsupportedGroupWatch as GroupWatch, UnsupportedSignals as CaughtSignals, die_from_signal,
    end_abandoned_group, exit_signal, kill_group, terminate_group,
};
#[cfg(unix)]
pub use self::watch::{GroupWatch, end_abandoned_group};

/// Starts child processes.
#[derive(Clone, Debug)]
pub struct ChildLauncher {
    /// The program that calls [`become_child`] when it is run with `arguments`, the flags of [`ChildSetup`], `--` and
    /// the child's command.
    pub program: PathBuf,
    /// The first arguments of the program.
    pub arguments: Vec<OsString>,
}

/// What a child process does before its program starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChildSetup {
    /// The process to end with.
    pub parent: Option<i32>,
    /// The limit of open files.
    pub open_files: Option<u64>,
}

/// The process group of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildGroup {
    /// Ours: keys such as Ctrl-C at a terminal reach both processes.
    Shared,
    /// A new group, which the child's own children join.
    Own,
}

impl ChildLauncher {
    /// The command that runs a child process, which ends when this process is killed.
    pub fn command(&self, command: &[OsString], group: ChildGroup) -> Command {
        let parent = i32::try_from(std::process::id()).ok().filter(|_| cfg!(target_os = "linux"));
        let open_files = limits::original_open_file_limit();
        let mut launched = self.prepare_command(command, ChildSetup { parent, open_files });
        #[cfg(unix)]
        if group == ChildGroup::Own {
            std::os::unix::process::CommandExt::process_group(&mut launched, 0);
        }
        #[cfg(not(unix))]
        let _ = group;
        launched
    }

    /// The command that runs a program that may outlive this process.
    pub fn detached_command(&self, command: &[OsString]) -> Command {
        let open_files = limits::original_open_file_limit();
        self.prepare_command(command, ChildSetup { parent: None, open_files })
    }

    fn prepare_command(&self, command: &[OsString], setup: ChildSetup) -> Command {
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

/// Sets up this process and becomes the child. Returns only on failure.
#[cfg(unix)]
pub fn become_child(setup: ChildSetup, command: &[OsString]) -> io::Error {
    use std::os::unix::process::CommandExt;
    if let Some(parent) = setup.parent
        && let Err(error) = kill_with_parent(parent)
    {
        return error;
    }
    if let Some(open_files) = setup.open_files {
        limits::set_open_file_limit(open_files);
    }
    Command::new(&command[0]).args(&command[1..]).exec()
}

/// Not supported on this system.
#[cfg(not(unix))]
pub fn become_child(_: ChildSetup, _: &[OsString]) -> io::Error {
    io::ErrorKind::Unsupported.into()
}

/// Asks the kernel to kill this process when `parent` ends.
#[cfg(target_os = "linux")]
fn kill_with_parent(parent: i32) -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have ended before that call.
    match getppid().map(|pid| pid.as_raw_nonzero().get()) {
        Some(pid) if pid == parent => Ok(()),
        _ => Err(io::Error::other("the parent process has ended")),
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn kill_with_parent(_: i32) -> io::Result<()> {
    Ok(())
}
