//! Systems without signals and process groups. Nothing here has an effect.

use std::io::{self, Read};
use std::process::{Child, ExitStatus};

use super::ChildLauncher;

/// Does nothing.
#[derive(Debug)]
pub struct UnsupportedSignals;

impl UnsupportedSignals {
    /// Does nothing.
    pub fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Does nothing.
    pub fn forward_to_group(self, _: &Child) {}
}

/// Does nothing: the child ends by itself.
pub fn terminate_group(_: &Child) {}

/// Does nothing: the child ends by itself.
pub fn kill_group(_: &Child) {}

/// Always `None`.
pub fn exit_signal(_: ExitStatus) -> Option<i32> {
    None
}

/// Does nothing.
pub fn die_from_signal(_: i32) {}

/// Does nothing.
#[derive(Debug)]
pub struct UnsupportedGroupWatch;

impl UnsupportedGroupWatch {
    /// Does nothing.
    pub fn start(_: &ChildLauncher, _: i32) -> io::Result<Self> {
        Ok(Self)
    }

    /// Does nothing.
    pub fn watch_child(_: &ChildLauncher, _: &Child) -> io::Result<Self> {
        Ok(Self)
    }

    /// Does nothing.
    pub fn dismiss(self) {}
}

/// Does nothing.
pub fn end_abandoned_group(_: &mut impl Read, _: i32) -> io::Result<()> {
    Ok(())
}
