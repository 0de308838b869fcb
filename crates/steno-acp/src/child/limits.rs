//! How many files a process may open. Servers need more than the usual 1,024; other programs may rely on that number, so
//! children get the limit that we began with.

use std::sync::OnceLock;

/// The limit before it was raised.
static ORIGINAL: OnceLock<u64> = OnceLock::new();

/// Raises the limit of this process to the most that it may have. If the system refuses, it stays as it is.
#[cfg(unix)]
pub fn raise_open_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current.filter(|_| limit.current != limit.maximum) else { return };
    let raised = Rlimit { current: limit.maximum, ..limit };
    if setrlimit(Resource::Nofile, raised).is_ok() {
        let _ = ORIGINAL.set(current);
    }
}

/// There is no such limit here.
#[cfg(not(unix))]
pub fn raise_open_file_limit() {}

/// The limit that children are to have, if ours was raised.
pub(super) fn original_open_file_limit() -> Option<u64> {
    ORIGINAL.get().copied()
}

/// Sets the limit of this process.
#[cfg(unix)]
pub(super) fn set_open_file_limit(open_files: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = Rlimit { current: Some(open_files), ..getrlimit(Resource::Nofile) };
    // A higher limit than wanted is no reason not to run a program.
    let _ = setrlimit(Resource::Nofile, limit);
}
