//! The lock for both stores: a lock of the operating system on `.leslie`, and leslie's `.lock` folders.
//!
//! The system lock ends with its process, so it is enough between Steno's processes. The folders keep leslie's
//! processes out. Steno creates them with a mode that leslie never uses, so that the next process can remove those of
//! a killed one at once. On file systems without modes they are stale after ten seconds, as for leslie.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use super::error::ThreadError;
use super::store::{OBJECTIVES_FILE, RELATIONS_FILE};
use steno_model::durable::{FileError, OnPath};
use steno_model::step;
use steno_model::timestamp::Clock;

/// Age after which a lock folder is stale.
const STALE_LOCK_AGE: Duration = Duration::from_secs(10);
/// Delays before each retry, in milliseconds.
const RETRY_DELAYS_MS: [u64; 5] = [100, 200, 400, 800, 1000];
/// Mode bit that marks Steno's lock folders.
#[cfg(unix)]
const STICKY_BIT: u32 = 0o1000;

/// A held lock, released when dropped.
pub(super) struct StoreLock {
    folders: Vec<PathBuf>,
    /// The system lock, on which other threads and processes of Steno wait.
    _base: Option<File>,
}

/// Takes the lock of the stores in `base`.
pub(super) fn lock_stores(base: &Path, clock: &Clock) -> Result<StoreLock, ThreadError> {
    let system = lock_folder(base).on("lock", base)?;
    if system.is_some() {
        remove_own_locks(base)?;
    }
    let mut held = StoreLock { folders: Vec::new(), _base: system };
    for store in [RELATIONS_FILE, OBJECTIVES_FILE] {
        let path = base.join(format!("{store}.lock"));
        take_lock_folder(&path, clock)?;
        held.folders.push(path);
        step::done();
    }
    Ok(held)
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        for path in &self.folders {
            let _ = fs::remove_dir(path);
            step::done();
        }
    }
}

fn lock_folder(base: &Path) -> io::Result<Option<File>> {
    if !cfg!(unix) {
        return Ok(None);
    }
    let folder = File::open(base)?;
    folder.lock()?;
    Ok(Some(folder))
}

/// Removes lock folders of a killed Steno process. Only the holder of the system lock may do this.
fn remove_own_locks(base: &Path) -> Result<(), FileError> {
    for store in [RELATIONS_FILE, OBJECTIVES_FILE] {
        let path = base.join(format!("{store}.lock"));
        if is_ours(&path) {
            fs::remove_dir(&path).on("remove", &path)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn is_ours(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::symlink_metadata(path).is_ok_and(|data| data.is_dir() && data.mode() & STICKY_BIT != 0)
}

#[cfg(not(unix))]
fn is_ours(_path: &Path) -> bool {
    false
}

/// Creates a lock folder with Steno's mode.
fn create_lock_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, STICKY_BIT | 0o700);
    builder.create(path)
}

fn take_lock_folder(path: &Path, clock: &Clock) -> Result<(), ThreadError> {
    let mut waits = RETRY_DELAYS_MS.iter();
    loop {
        match create_lock_folder(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return Ok(other.on("create folder", path)?),
        }
        if is_stale_lock(path, clock) && fs::remove_dir(path).is_ok() {
            continue;
        }
        let Some(wait) = waits.next() else {
            return Err(ThreadError::Locked(path.to_owned()));
        };
        sleep(Duration::from_millis(*wait));
    }
}

fn is_stale_lock(path: &Path, clock: &Clock) -> bool {
    let now = SystemTime::from(clock.now().instant());
    let age = fs::metadata(path)
        .and_then(|data| data.modified())
        .map(|time| now.duration_since(time).unwrap_or_default());
    age.is_ok_and(|age| age > STALE_LOCK_AGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use steno_model::timestamp::Timestamp;

    fn later(seconds: i64) -> Clock {
        let now = jiff::Timestamp::now() + jiff::Span::new().seconds(seconds);
        Clock::fixed(Timestamp::from_instant(now, 3))
    }

    #[test]
    fn a_living_leslie_is_respected_and_a_dead_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join("objectives.json.lock");
        fs::create_dir(&lock).unwrap();
        let error = lock_stores(dir.path(), &later(0)).err().unwrap();
        assert_eq!(error.code(), "T501");
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|item| item.unwrap()).collect();
        assert_eq!(left.len(), 1, "{left:?}");
        drop(lock_stores(dir.path(), &later(12)).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_of_a_killed_process_is_free_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut held = lock_stores(dir.path(), &later(0)).unwrap();
        let folders = std::mem::take(&mut held.folders);
        drop(held);
        assert!(folders.iter().all(|path| path.is_dir()));
        drop(lock_stores(dir.path(), &later(0)).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
