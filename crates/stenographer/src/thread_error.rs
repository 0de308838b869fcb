//! Messages and hints for the errors of threads.

use steno_core::thread::{Action, ThreadError};

use crate::error::CommandError;

/// Turns a thread error into a command error with hints.
pub(crate) fn explain_thread_error(error: ThreadError) -> CommandError {
    match error {
        ThreadError::Transition { from, action } => {
            let possible = Action::ALL.iter().filter(|action| from.after(**action).is_some());
            let possible: Vec<_> = possible.map(|action| action.as_str()).collect();
            let error = CommandError::user(format!("not possible while it is {from}: {action}"));
            let known =
                if possible.is_empty() { "nothing".to_owned() } else { possible.join(", ") };
            error.hint(format!("possible: {known}"))
        }
        ThreadError::Circular { from, target } => {
            let message = format!("references would go in a circle: {from} -> {target} -> {from}");
            CommandError::user(message)
        }
        ThreadError::Conflict(file) => {
            let error = CommandError::user(format!("the threads differ in {file}"));
            error.hint("nothing was merged; without --strict the last one's counts")
        }
        ThreadError::Locked(path) => {
            let message = format!("somebody else is changing the threads: {}", path.display());
            CommandError::user(message).hint("try again; a lock nobody holds ends after 10 seconds")
        }
        ThreadError::Unreadable { path, source } => {
            let shown = path.display();
            let error =
                CommandError::user(format!("could not read {shown} nor its backup: {source}"));
            error.hint("put back a copy of either, from version control for one")
        }
        ThreadError::NotAFolder(path) => {
            CommandError::user(format!("not a thread's folder: {}", path.display()))
        }
        ThreadError::DanglingLink { path, target } => {
            let (path, target) = (path.display(), target.display());
            let error = CommandError::user(format!("{path} is a link to a missing file: {target}"));
            error.hint("create that file, or remove the link")
        }
        ThreadError::GuideVersion(version) => {
            let error = CommandError::user(format!("not a version of the guide: {version}"));
            error.hint("set the version in the tag <leslie_system_guide ...> of AGENTS.md right")
        }
        other => CommandError::user(other),
    }
}
