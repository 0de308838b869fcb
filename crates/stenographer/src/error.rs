//! What a command failed of, said in one form: `error:`, `caused by:`, `hint:`.

use std::error::Error;
use std::io;
use std::process::{ExitCode, ExitStatus};

use steno_acp::child;

/// How the program ends; documented in `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandExit {
    /// Done.
    Done,
    /// Nothing was found, or something was wrong with the input.
    Failed,
    /// The command line was wrong.
    Usage,
    /// As the program ended that was run.
    Child(u8),
    /// By the signal that ended the program that was run.
    Signalled(i32),
}

impl CommandExit {
    /// As a program ended that was run.
    pub(crate) fn from_status(status: ExitStatus) -> Self {
        match child::signal_of(status) {
            Some(signal) => CommandExit::Signalled(signal),
            None => CommandExit::Child(
                status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
            ),
        }
    }
}

impl From<CommandExit> for ExitCode {
    fn from(exit: CommandExit) -> Self {
        match exit {
            CommandExit::Done => ExitCode::SUCCESS,
            CommandExit::Failed => ExitCode::from(1),
            CommandExit::Usage => ExitCode::from(2),
            CommandExit::Child(code) => ExitCode::from(code),
            CommandExit::Signalled(signal) => {
                child::die_from_signal(signal);
                // As a shell tells of a signal that this process could not die from.
                ExitCode::from(u8::try_from(128 + signal).unwrap_or(1))
            }
        }
    }
}

/// A command's failure.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) exit: CommandExit,
    pub(crate) error: Box<dyn Error + Send + Sync>,
    pub(crate) hints: Vec<String>,
}

impl CommandError {
    /// Something that the user can set right.
    pub(crate) fn user(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { exit: CommandExit::Failed, error: error.into(), hints: Vec::new() }
    }

    /// A wrong command line that clap could not see.
    pub(crate) fn usage(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { exit: CommandExit::Usage, ..Self::user(error) }
    }

    /// Adds what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The failure in one line, with what to do about it.
    pub(crate) fn to_line(&self) -> String {
        let mut words = vec![self.error.to_string()];
        words.extend(self.hints.iter().cloned());
        words.join("; ")
    }

    /// Whether the reader of our output went away, which is no failure.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        let plain = self.error.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = self.error.downcast_ref::<serde_json::Error>();
        let kind = plain.or(json.and_then(serde_json::Error::io_error_kind));
        kind == Some(io::ErrorKind::BrokenPipe)
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for CommandError {
    fn from(error: E) -> Self {
        Self::user(error)
    }
}
