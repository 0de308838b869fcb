//! The lock of a context: chibi's `.lock` file, and a system lock on the folder.
//!
//! chibi rewrites the time in `.lock` while it works, and takes over a lock with an old time. Steno holds the lock
//! only during one change, so it does not rewrite the time.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::context::ContextError;
use steno_model::durable::{OnPath, private_options};
use steno_model::timestamp::Clock;

/// Age in seconds after which a lock is stale: one and a half of chibi's heartbeats.
const STALE_LOCK_SECONDS: i64 = 45;
/// Number of attempts to take a lock, because another process may take or release it in between.
const MAX_LOCK_ATTEMPTS: usize = 3;

/// Whether the holder of a lock is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextLockStatus {
    /// The holder is alive.
    Active,
    /// The holder is gone.
    Stale,
}

/// The status of the lock of the context in `dir`; `None` if there is no lock.
pub fn context_lock_status(dir: &Path, clock: &Clock) -> Option<ContextLockStatus> {
    let path = dir.join(".lock");
    let stale = path.exists().then(|| is_stale_lock(&path, clock.now().unix_seconds()))?;
    Some(if stale { ContextLockStatus::Stale } else { ContextLockStatus::Active })
}

/// A held lock, released when dropped.
#[derive(Debug)]
pub(super) struct ContextLock {
    path: PathBuf,
    stamp: String,
    /// The system lock, on which other threads and processes of Steno wait.
    _folder: Option<File>,
}

/// Takes the lock of the context in `dir`.
pub(super) fn lock_context(dir: &Path, clock: &Clock) -> Result<ContextLock, ContextError> {
    let folder = lock_folder(dir).on("lock", dir)?;
    let path = dir.join(".lock");
    let now = clock.now().unix_seconds();
    for _ in 0..MAX_LOCK_ATTEMPTS {
        let created = private_options().write(true).create_new(true).open(&path);
        match created {
            Ok(mut file) => {
                let stamp = now.to_string();
                file.write_all(stamp.as_bytes()).on("write", &path)?;
                return Ok(ContextLock { path, stamp, _folder: folder });
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => {
                other.on("create", &path)?;
            }
        }
        if !is_stale_lock(&path, now) {
            break;
        }
        // Another process may take the lock first; then the next attempt fails or finds a fresh lock.
        let _ = fs::remove_file(&path);
    }
    Err(ContextError::Locked(path))
}

impl Drop for ContextLock {
    /// Removes the lock, unless another process found it stale and took it over.
    fn drop(&mut self) {
        if fs::read_to_string(&self.path).is_ok_and(|stamp| stamp == self.stamp) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn lock_folder(dir: &Path) -> io::Result<Option<File>> {
    if !cfg!(unix) {
        return Ok(None);
    }
    let folder = File::open(dir)?;
    folder.lock()?;
    Ok(Some(folder))
}

/// Whether a lock's time is old or cannot be parsed.
fn is_stale_lock(path: &Path, now: i64) -> bool {
    let stamp = fs::read_to_string(path).ok();
    let taken = stamp.and_then(|stamp| stamp.trim().parse::<i64>().ok());
    taken.is_none_or(|taken| now.saturating_sub(taken) > STALE_LOCK_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use steno_model::timestamp::Timestamp;

    #[test]
    fn a_living_holder_is_respected_and_a_dead_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".lock");
        let clock = Clock::fixed(Timestamp::from_unix(1000).unwrap());
        for (stamp, free) in
            [("1000", false), ("955", false), ("954", true), ("", true), ("x", true)]
        {
            fs::write(&path, stamp).unwrap();
            assert_eq!(lock_context(dir.path(), &clock).is_ok(), free, "{stamp:?}");
        }
        let held = lock_context(dir.path(), &clock).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1000");
        drop(held);
        assert!(!path.exists());
    }

    #[test]
    fn a_lock_that_was_taken_over_is_left_to_its_new_holder() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".lock");
        let held = lock_context(dir.path(), &Clock::system()).unwrap();
        fs::write(&path, "1").unwrap();
        drop(held);
        assert!(path.exists());
    }
}
