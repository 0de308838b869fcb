//! Signals: those that we get go to a child, and we end by the signal that ended it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::thread;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process_group, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level::emulate_default_handler;

/// Signals that no longer end us.
#[derive(Debug)]
pub struct CaughtSignals(signal_hook::iterator::Signals);

impl CaughtSignals {
    /// Catches them from now on; those that come before there is a child wait for it.
    pub fn new() -> io::Result<Self> {
        Ok(Self(signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])?))
    }

    /// Sends each to the group of a child.
    pub fn forward_to_group(mut self, child: &Child) {
        let Some(group) = group_of(child) else { return };
        thread::spawn(move || {
            for signal in self.0.forever().filter_map(Signal::from_named_raw) {
                // A group that has ended needs none.
                let _ = kill_process_group(group, signal);
            }
        });
    }
}

/// Asks a child and its group to end.
pub fn terminate_group(child: &Child) {
    signal_group(child, Signal::TERM);
}

/// Kills a child and its group.
pub fn kill_group(child: &Child) {
    signal_group(child, Signal::KILL);
}

fn signal_group(child: &Child, signal: Signal) {
    if let Some(group) = group_of(child) {
        // A group that has ended needs none.
        let _ = kill_process_group(group, signal);
    }
}

pub(super) fn group_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

/// The signal that ended a process.
pub fn signal_of(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Ends this process by a signal; returns if the signal does not end processes, or is not known. No core is dumped: the
/// process that failed has dumped its own.
pub fn die_from_signal(signal: i32) {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..getrlimit(Resource::Core) });
    let _ = emulate_default_handler(signal);
}
