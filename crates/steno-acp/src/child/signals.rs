//! Forwards signals to a child's process group, and ends this process by the signal that ended the child.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::thread;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process_group, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level::emulate_default_handler;

/// Caught signals, which no longer end this process.
#[derive(Debug)]
pub struct CaughtSignals(signal_hook::iterator::Signals);

impl CaughtSignals {
    /// Starts to catch signals. Those that arrive before there is a child are queued.
    pub fn new() -> io::Result<Self> {
        Ok(Self(signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])?))
    }

    /// Forwards each signal to the process group of a child.
    pub fn forward_to_group(mut self, child: &Child) {
        let Some(group) = child_group(child) else { return };
        thread::spawn(move || {
            for signal in self.0.forever().filter_map(Signal::from_named_raw) {
                // The group may have ended already.
                let _ = kill_process_group(group, signal);
            }
        });
    }
}

/// Sends `SIGTERM` to a child and its group.
pub fn terminate_group(child: &Child) {
    signal_group(child, Signal::TERM);
}

/// Sends `SIGKILL` to a child and its group.
pub fn kill_group(child: &Child) {
    signal_group(child, Signal::KILL);
}

fn signal_group(child: &Child, signal: Signal) {
    if let Some(group) = child_group(child) {
        // The group may have ended already.
        let _ = kill_process_group(group, signal);
    }
}

pub(super) fn child_group(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

/// The signal that ended a process, if one did.
pub fn exit_signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Ends this process by a signal; returns if the signal is unknown or does not end processes. It dumps no core,
/// because the failed process has dumped its own.
pub fn die_from_signal(signal: i32) {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..getrlimit(Resource::Core) });
    let _ = emulate_default_handler(signal);
}
