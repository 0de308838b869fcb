//! The pager that shows long results on a terminal.

use std::process::{Child, ChildStdin, Command, Stdio};

use crate::process_environment::ProcessEnvironment;

/// A running pager.
pub(crate) struct Pager {
    child: Child,
}

impl Pager {
    /// Starts a pager. Returns it with its input; `None` if the command is wrong or there is no such program.
    pub(crate) fn start(command: &str) -> Option<(Self, ChildStdin)> {
        let words = shlex::split(command)?;
        let (program, args) = words.split_first()?;
        let mut pager = Command::new(program);
        pager.args(args).stdin(Stdio::piped());
        // Ends at once if all fits on the screen, shows colours, and leaves the text on the screen.
        if ProcessEnvironment::variable("LESS").is_none() {
            pager.env("LESS", "FRX");
        }
        let mut child = pager.spawn().ok()?;
        let input = child.stdin.take()?;
        // Ctrl-C is for the pager. It fails only if the command has a handler of its own.
        let _ = ctrlc::set_handler(|| {});
        Some((Self { child }, input))
    }

    /// Waits until the user leaves the pager. Its input must be closed.
    pub(crate) fn wait(mut self) {
        let _ = self.child.wait();
    }
}
