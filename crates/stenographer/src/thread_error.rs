//! Messages and hints for thread errors.

use steno_seeds::thread::{LifecycleAction, ThreadError};

use crate::error::CommandError;

/// Converts a thread error to a command error with hints.
pub(crate) fn explain_thread_error(error: ThreadError) -> CommandError {
    match error {
        ThreadError::Transition { from, action } => {
            let possible =
                LifecycleAction::ALL.iter().filter(|action| from.after_action(**action).is_some());
            let possible: Vec<_> = possible.map(|action| action.as_str()).collect();
            let error =
                CommandError::user(format!("{action} is not possible while the thread is {from}"));
            let known =
                if possible.is_empty() { "nothing".to_owned() } else { possible.join(", ") };
            error.hint(format!("possible actions: {known}"))
        }
        ThreadError::Circular { from, target } => {
            let message = format!("circular reference: {from} -> {target} -> {from}");
            CommandError::user(message)
        }
        ThreadError::Conflict(file) => {
            let error = CommandError::user(format!("the threads differ in {file}"));
            error.hint("nothing was merged; without --strict the last thread wins")
        }
        ThreadError::Locked(path) => {
            let message = format!("another process is changing the threads: {}", path.display());
            CommandError::user(message).hint("try again; a stale lock expires after 10 seconds")
        }
        ThreadError::Unreadable { path, source } => {
            let shown = path.display();
            let error =
                CommandError::user(format!("could not read {shown} or its backup: {source}"));
            error.hint("restore a copy of either, for example from version control")
        }
        ThreadError::NotAFolder(path) => {
            CommandError::user(format!("not a thread folder: {}", path.display()))
        }
        ThreadError::DanglingLink { path, target } => {
            let (path, target) = (path.display(), target.display());
            let error = CommandError::user(format!("{path} is a link to a missing file: {target}"));
            error.hint("create that file, or remove the link")
        }
        ThreadError::GuideVersion(version) => {
            let error = CommandError::user(format!("not a guide version: {version}"));
            error.hint("fix the version in the tag <leslie_system_guide ...> of AGENTS.md")
        }
        other => CommandError::user(other),
    }
}
