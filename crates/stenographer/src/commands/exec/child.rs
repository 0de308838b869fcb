//! A program that runs in our place: it gets our signals, and we end as it does.

use std::io;
use std::process::{Command, ExitStatus};

/// Runs a program to its end, and passes on to it the signals that only we get.
#[cfg(unix)]
pub(super) fn run(command: &mut Command) -> io::Result<ExitStatus> {
    use rustix::process::{Pid, Signal, kill_process};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    use signal_hook::iterator::Signals;

    // From now on they wait for the program, instead of ending us.
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2])?;
    let mut child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let handle = signals.handle();
    let passing = std::thread::spawn(move || {
        for signal in signals.forever() {
            // What is typed goes to all programs at the terminal, the child among them.
            let is_typed = matches!(signal, SIGINT | SIGQUIT) && is_in_front();
            if let (Some(pid), Some(signal), false) =
                (pid, Signal::from_named_raw(signal), is_typed)
            {
                let _ = kill_process(pid, signal);
            }
        }
    });
    let status = child.wait();
    handle.close();
    let _ = passing.join();
    status
}

/// Whether our group is the one that a terminal's keys go to.
#[cfg(unix)]
fn is_in_front() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return false };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Runs a program to its end.
#[cfg(not(unix))]
pub(super) fn run(command: &mut Command) -> io::Result<ExitStatus> {
    command.spawn()?.wait()
}

/// The code that stands for how a program ended: its own, or 128 and the signal that killed it.
pub(super) fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(1);
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
