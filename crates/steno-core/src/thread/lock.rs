//! The right to change both stores: a lock of the system on `.leslie`, and leslie's own `.lock` folders.
//!
//! The system's lock ends with its process, so it alone decides among our processes. The folders keep leslie's
//! processes out. Should we be killed while they stand, a note tells the next of us that they are ours; without
//! the note they count as abandoned after ten seconds, as leslie has it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use super::error::ThreadError;
use super::step;
use super::store::{OBJECTIVES, RELATIONS};
use crate::durable::{FileError, OnPath, private_options};
use crate::timestamp::Clock;

/// After so long without a sign of life a lock is abandoned.
const STALE: Duration = Duration::from_secs(10);
/// How long is waited before each new try, in milliseconds.
const WAITS: [u64; 5] = [100, 200, 400, 800, 1000];
/// Which lock folders are ours: the time of each.
const NOTE: &str = ".steno-lock";

/// A held lock; given up when dropped.
pub(super) struct Held {
    base: PathBuf,
    folders: Vec<PathBuf>,
    /// Keeps other threads and processes of ours waiting.
    _base: Option<File>,
}

/// Takes the lock of the stores in `base`.
pub(super) fn take(base: &Path, clock: &Clock) -> Result<Held, ThreadError> {
    let system = lock_folder(base).on("lock", base)?;
    if system.is_some() {
        remove_own(base)?;
    }
    let mut held = Held { base: base.to_owned(), folders: Vec::new(), _base: system };
    for store in [RELATIONS, OBJECTIVES] {
        let path = base.join(format!("{store}.lock"));
        make(&path, clock)?;
        held.folders.push(path);
        step::done();
    }
    held.note().on("write", &base.join(NOTE))?;
    step::done();
    Ok(held)
}

impl Held {
    fn note(&self) -> io::Result<()> {
        let mut text = String::new();
        for path in &self.folders {
            text.push_str(&format!("{}\n", stamp(path)?));
        }
        let mut file =
            private_options().write(true).create(true).truncate(true).open(self.base.join(NOTE))?;
        io::Write::write_all(&mut file, text.as_bytes())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for path in &self.folders {
            let _ = fs::remove_dir(path);
            step::done();
        }
        let _ = fs::remove_file(self.base.join(NOTE));
        step::done();
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

/// Removes the lock folders of one of us who was killed; whoever holds the system's lock may.
fn remove_own(base: &Path) -> Result<(), FileError> {
    let note = base.join(NOTE);
    let Ok(text) = fs::read_to_string(&note) else {
        return Ok(());
    };
    for store in [RELATIONS, OBJECTIVES] {
        let path = base.join(format!("{store}.lock"));
        if stamp(&path).is_ok_and(|stamp| text.lines().any(|line| line == stamp)) {
            fs::remove_dir(&path).on("remove", &path)?;
        }
    }
    fs::remove_file(&note).on("remove", &note)
}

/// The time of a lock folder; a folder made later has another.
fn stamp(path: &Path) -> io::Result<String> {
    let time = fs::metadata(path)?.modified()?.duration_since(SystemTime::UNIX_EPOCH);
    Ok(time.unwrap_or_default().as_nanos().to_string())
}

fn make(path: &Path, clock: &Clock) -> Result<(), ThreadError> {
    let mut waits = WAITS.iter();
    loop {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return Ok(other.on("create folder", path)?),
        }
        if is_stale(path, clock) && fs::remove_dir(path).is_ok() {
            continue;
        }
        let Some(wait) = waits.next() else {
            return Err(ThreadError::Locked(path.to_owned()));
        };
        sleep(Duration::from_millis(*wait));
    }
}

fn is_stale(path: &Path, clock: &Clock) -> bool {
    let now = SystemTime::from(clock.now().instant());
    let age = fs::metadata(path)
        .and_then(|data| data.modified())
        .map(|time| now.duration_since(time).unwrap_or_default());
    age.is_ok_and(|age| age > STALE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::Timestamp;

    fn later(seconds: i64) -> Clock {
        let now = jiff::Timestamp::now() + jiff::Span::new().seconds(seconds);
        Clock::fixed(Timestamp::from_instant(now, 3))
    }

    #[test]
    fn a_living_leslie_is_respected_and_a_dead_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join("objectives.json.lock");
        fs::create_dir(&lock).unwrap();
        let error = take(dir.path(), &later(0)).err().unwrap();
        assert_eq!(error.code(), "T501");
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|item| item.unwrap()).collect();
        assert_eq!(left.len(), 1, "{left:?}");
        drop(take(dir.path(), &later(12)).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn what_a_killed_one_of_us_held_is_free_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut held = take(dir.path(), &later(0)).unwrap();
        assert!(dir.path().join("thread_relations.json.lock").is_dir());
        let note = fs::read(dir.path().join(NOTE)).unwrap();
        let folders = std::mem::take(&mut held.folders);
        drop(held);
        fs::write(dir.path().join(NOTE), note).unwrap();
        assert!(folders.iter().all(|path| path.exists()));
        drop(take(dir.path(), &later(0)).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
