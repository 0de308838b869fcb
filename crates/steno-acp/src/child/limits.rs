//! The limit of open files. Servers need more than the usual 1,024. Other programs may rely on that number, so
//! children get the original limit.

use std::sync::OnceLock;

/// The limit before this process raised it.
static ORIGINAL_LIMIT: OnceLock<u64> = OnceLock::new();

/// Raises the limit of this process to its maximum. On failure the limit stays as it is.
#[cfg(unix)]
pub fn raise_open_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current.filter(|_| limit.current != limit.maximum) else { return };
    let raised = Rlimit { current: limit.maximum, ..limit };
    if setrlimit(Resource::Nofile, raised).is_ok() {
        let _ = ORIGINAL_LIMIT.set(current);
    }
}

/// Not supported on this system.
#[cfg(not(unix))]
pub fn raise_open_file_limit() {}

/// The limit for children, if this process raised its own.
pub(super) fn original_open_file_limit() -> Option<u64> {
    ORIGINAL_LIMIT.get().copied()
}

/// Sets the limit of this process.
#[cfg(unix)]
pub(super) fn set_open_file_limit(open_files: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = Rlimit { current: Some(open_files), ..getrlimit(Resource::Nofile) };
    // A program can also run with a higher limit.
    let _ = setrlimit(Resource::Nofile, limit);
}
