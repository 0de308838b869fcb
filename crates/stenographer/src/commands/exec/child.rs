//! Runs a program as a child process: forwards signals to it and returns its exit status.

use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitStatus};

use steno_acp::child::{ChildGroup, ChildLauncher};

/// Builds the command for a program. On a terminal the child shares our process group, so that it can read the
/// keyboard; otherwise it gets its own group.
pub(super) fn prepare_command(
    launcher: &ChildLauncher,
    program: &[OsString],
) -> (Command, ChildGroup) {
    let group = if is_foreground_group() { ChildGroup::Shared } else { ChildGroup::Own };
    (launcher.command(program, group), group)
}

/// Runs a program to its end and forwards signals that only this process receives. If this process is killed, the
/// child's group ends too.
#[cfg(unix)]
pub(super) fn run(
    launcher: &ChildLauncher,
    mut command: Command,
    group: ChildGroup,
) -> io::Result<ExitStatus> {
    use rustix::process::{Pid, Signal, kill_process, kill_process_group};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    use signal_hook::iterator::Signals;

    // From here on signals are queued for the child, instead of ending this process.
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2])?;
    let mut child = command.spawn()?;
    // Without the watcher, only the program itself ends with this process.
    let watch = watched_group(&child, group)
        .and_then(|group| steno_acp::child::GroupWatch::start(launcher, group).ok());
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let handle = signals.handle();
    let forwarding = std::thread::spawn(move || {
        for signal in signals.forever() {
            // The terminal sends typed signals to the whole foreground group, the child included.
            let is_typed = matches!(signal, SIGINT | SIGQUIT) && is_foreground_group();
            let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) else { continue };
            let _ = match group {
                ChildGroup::Own => kill_process_group(pid, signal),
                ChildGroup::Shared if is_typed => Ok(()),
                ChildGroup::Shared => kill_process(pid, signal),
            };
        }
    });
    let status = child.wait();
    if let Some(watch) = watch {
        watch.dismiss();
    }
    handle.close();
    let _ = forwarding.join();
    status
}

/// Returns the group to end if this process is killed: the child's own, or ours if we lead it, as every job of a
/// shell does.
#[cfg(unix)]
fn watched_group(child: &std::process::Child, group: ChildGroup) -> Option<i32> {
    let own = rustix::process::getpgrp();
    match group {
        ChildGroup::Own => i32::try_from(child.id()).ok(),
        ChildGroup::Shared if own == rustix::process::getpid() => Some(own.as_raw_nonzero().get()),
        ChildGroup::Shared => None,
    }
}

/// Returns whether our group is the foreground group of the terminal.
#[cfg(unix)]
fn is_foreground_group() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return false };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

#[cfg(not(unix))]
fn is_foreground_group() -> bool {
    true
}

/// Runs a program to its end.
#[cfg(not(unix))]
pub(super) fn run(
    _: &ChildLauncher,
    mut command: Command,
    _: ChildGroup,
) -> io::Result<ExitStatus> {
    command.spawn()?.wait()
}
