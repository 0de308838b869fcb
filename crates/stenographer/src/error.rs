//! Command errors and exit codes, printed as `error:`, `caused by:`, `hint:`.

use std::error::Error;
use std::io;
use std::process::{ExitCode, ExitStatus};

use steno_acp::child;
use steno_model::durable::FileError;
use steno_store::StoreError;

/// Exit status of the program; documented in `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandExit {
    /// Success.
    Done,
    /// Nothing found, or an error in the input.
    Failed,
    /// A wrong command line.
    Usage,
    /// Exit code of the child process.
    Child(u8),
    /// Signal that ended the child process.
    Signalled(i32),
}

impl CommandExit {
    /// Converts the exit status of a child process.
    pub(crate) fn from_status(status: ExitStatus) -> Self {
        match child::exit_signal(status) {
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
                // The shell's convention, if this process could not die from the signal.
                ExitCode::from(u8::try_from(128 + signal).unwrap_or(1))
            }
        }
    }
}

/// An error of a command.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) exit: CommandExit,
    pub(crate) error: Box<dyn Error + Send + Sync>,
    pub(crate) hints: Vec<String>,
}

impl CommandError {
    /// Creates an error that the user can fix.
    pub(crate) fn user(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { exit: CommandExit::Failed, error: error.into(), hints: Vec::new() }
    }

    /// Creates a usage error that clap cannot detect.
    pub(crate) fn usage(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { exit: CommandExit::Usage, ..Self::user(error) }
    }

    /// Adds a hint.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Formats the error and its hints on one line.
    pub(crate) fn to_line(&self) -> String {
        let mut words = vec![self.error.to_string()];
        words.extend(self.hints.iter().cloned());
        words.join("; ")
    }

    /// Returns whether a named file or folder does not exist.
    pub(crate) fn is_missing_path(&self) -> bool {
        let of_store = match self.error.downcast_ref::<StoreError>() {
            Some(StoreError::File(error)) => Some(error),
            _ => None,
        };
        let file = self.error.downcast_ref::<FileError>().or(of_store);
        file.is_some_and(FileError::is_missing)
    }

    /// Returns whether the reader of our output closed the pipe, which is not an error.
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
