//! The lock of a context: chibi's `.lock` file, and a system lock on the folder.
//!
//! chibi rewrites the time in `.lock` while it works, and takes over a lock with an old time. Steno holds the lock
//! only during one change, so it does not rewrite the time.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::context::ContextError;
use crate::durable::{OnPath, private_options};
use crate::timestamp::Clock;

/// Age in seconds after which a lock is stale: one and a half of chibi's heartbeats.
const STALE: i64 = 45;
/// Number of attempts to take a lock, because another process may take or release it in between.
const TRIES: usize = 3;

/// Whether the holder of a lock is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockStatus {
    /// The holder is alive.
    Active,
    /// The holder is gone.
    Stale,
}

/// The status of the lock of the context in `dir`; `None` if there is no lock.
pub fn lock_status(dir: &Path, clock: &Clock) -> Option<LockStatus> {
    let path = dir.join(".lock");
    let stale = path.exists().then(|| is_stale(&path, clock.now().unix_seconds()))?;
    Some(if stale { LockStatus::Stale } else { LockStatus::Active })
}

/// A held lock, released when dropped.
#[derive(Debug)]
pub(super) struct Held {
    path: PathBuf,
    stamp: String,
    /// The system lock, on which other threads and processes of Steno wait.
    _folder: Option<File>,
}

/// Takes the lock of the context in `dir`.
pub(super) fn take(dir: &Path, clock: &Clock) -> Result<Held, ContextError> {
    let folder = wait_for_folder(dir).on("lock", dir)?;
    let path = dir.join(".lock");
    let now = clock.now().unix_seconds();
    for _ in 0..TRIES {
        let created = private_options().write(true).create_new(true).open(&path);
        match created {
            Ok(mut file) => {
                let stamp = now.to_string();
                file.write_all(stamp.as_bytes()).on("write", &path)?;
                return Ok(Held { path, stamp, _folder: folder });
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => {
                other.on("create", &path)?;
            }
        }
        if !is_stale(&path, now) {
            break;
        }
        // Another process may take the lock first; then the next attempt fails or finds a fresh lock.
        let _ = fs::remove_file(&path);
    }
    Err(ContextError::Locked(path))
}

impl Drop for Held {
    /// Removes the lock, unless another process found it stale and took it over.
    fn drop(&mut self) {
        if fs::read_to_string(&self.path).is_ok_and(|stamp| stamp == self.stamp) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn wait_for_folder(dir: &Path) -> io::Result<Option<File>> {
    if !cfg!(unix) {
        return Ok(None);
    }
    let folder = File::open(dir)?;
    folder.lock()?;
    Ok(Some(folder))
}

/// Whether a lock's time is old or cannot be parsed.
fn is_stale(path: &Path, now: i64) -> bool {
    let stamp = fs::read_to_string(path).ok();
    let taken = stamp.and_then(|stamp| stamp.trim().parse::<i64>().ok());
    taken.is_none_or(|taken| now.saturating_sub(taken) > STALE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::Timestamp;

    #[test]
    fn a_living_holder_is_respected_and_a_dead_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".lock");
        let clock = Clock::fixed(Timestamp::from_unix(1000).unwrap());
        for (stamp, free) in
            [("1000", false), ("955", false), ("954", true), ("", true), ("x", true)]
        {
            fs::write(&path, stamp).unwrap();
            assert_eq!(take(dir.path(), &clock).is_ok(), free, "{stamp:?}");
        }
        let held = take(dir.path(), &clock).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1000");
        drop(held);
        assert!(!path.exists());
    }

    #[test]
    fn a_lock_that_was_taken_over_is_left_to_its_new_holder() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".lock");
        let held = take(dir.path(), &Clock::system()).unwrap();
        fs::write(&path, "1").unwrap();
        drop(held);
        assert!(path.exists());
    }
}
