//! Where there are neither signals nor process groups.

use std::io::{self, Read};
use std::process::{Child, ExitStatus};

use super::ChildLauncher;

/// Nothing to catch.
#[derive(Debug)]
pub struct CaughtSignals;

impl CaughtSignals {
    /// Nothing to catch.
    pub fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Nothing to send.
    pub fn forward_to_group(self, _: &Child) {}
}

/// Waits for it to end by itself.
pub fn terminate_group(_: &Child) {}

/// Waits for it to end by itself.
pub fn kill_group(_: &Child) {}

/// No process is ended by a signal.
pub fn signal_of(_: ExitStatus) -> Option<i32> {
    None
}

/// No process is ended by a signal.
pub fn die_from_signal(_: i32) {}

/// Watches nothing.
#[derive(Debug)]
pub struct GroupWatch;

impl GroupWatch {
    /// There is nothing to watch.
    pub fn start(_: &ChildLauncher, _: i32) -> io::Result<Self> {
        Ok(Self)
    }

    /// There is nothing to watch.
    pub fn of_child(_: &ChildLauncher, _: &Child) -> io::Result<Self> {
        Ok(Self)
    }

    /// There is nothing to end.
    pub fn dismiss(self) {}
}

/// There is nothing to end.
pub fn end_abandoned_group(_: &mut impl Read, _: i32) -> io::Result<()> {
    Ok(())
}
