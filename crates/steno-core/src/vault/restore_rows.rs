//! Restores the rows of a session: into an existing database, or as a new one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};

use super::restore::{RestoreError, is_taken};
use super::rows::{RESTORE_LIMIT, replay};
use super::sealed::{KeptFile, Problems};
use crate::agent;
use crate::durable::{self, OnPath};
use steno_vault::sqlite::rows::{Claim, MergeError, Merged, Replay};

/// Pages copied per step. Other writers may proceed between steps.
const STEP: i32 = 1000;

/// Compares the kept rows with the database at `path`, without changing it.
pub(super) fn compare(kept: &KeptFile, path: &Path, force: bool) -> Result<Merged, RestoreError> {
    let merged = claiming(kept, force, |replay, claim| replay.compare(path, claim))?;
    merged.map_err(|error| RestoreError::rows(path, &error))
}

/// Checks that no log of another database and no dangling link is in the way of a new database.
pub(super) fn check_alone(path: &Path) -> Result<(), RestoreError> {
    if is_taken(path) {
        return Err(RestoreError::Taken(path.to_owned()));
    }
    for end in ["-wal", "-journal"] {
        let mut beside = path.as_os_str().to_owned();
        beside.push(end);
        let beside = PathBuf::from(beside);
        if fs::metadata(&beside).is_ok_and(|metadata| metadata.len() > 0) {
            return Err(RestoreError::Taken(beside));
        }
    }
    Ok(())
}

/// Creates a database that contains only the kept rows.
pub(super) fn make(kept: &KeptFile, path: &Path) -> Result<(), RestoreError> {
    let bytes = whole(kept)?.into_whole().on("create a database from", &kept.path)?;
    let attributes = kept.open()?.attributes();
    durable::create_private_dir(durable::parent(path))?;
    durable::replace_atomic(path, |file| {
        file.write_all(&bytes)?;
        attributes.give_to(file)
    })?;
    Ok(())
}

/// Merges the rows into the existing database after backing it up. Returns the path of the backup.
pub(super) fn merge(kept: &KeptFile, path: &Path, force: bool) -> Result<PathBuf, RestoreError> {
    let copy = back_up(path)?;
    let merged = claiming(kept, force, |replay, claim| replay.merge(path, claim))?;
    merged.map(|_| copy).map_err(|error| RestoreError::rows(path, &error))
}

/// Runs an action on the kept rows with a claim for their session.
fn claiming<T>(
    kept: &KeptFile,
    force: bool,
    action: impl FnOnce(&Replay, Claim<'_>) -> T,
) -> Result<T, RestoreError> {
    let header = kept.open()?.header().clone();
    let (schemas, key) = (agent::schemas(&header.agent), header.key.as_deref());
    Ok(action(&whole(kept)?, Claim { schemas, key, force }))
}

/// Replays the kept rows. Fails if any line cannot be read, because a partial restore would lose rows.
fn whole(kept: &KeptFile) -> Result<Replay, RestoreError> {
    let problems = Problems::default();
    let replay = replay(kept, RESTORE_LIMIT, &problems).on("read", &kept.path)?;
    let reported = problems.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match reported.first() {
        Some(problem) => Err(io::Error::other(problem.to_string())).on("read", &kept.path)?,
        None => Ok(replay),
    }
}

/// Backs up the database. The copy is compressed, so that no agent opens it by mistake.
fn back_up(path: &Path) -> Result<PathBuf, RestoreError> {
    let folder = tempfile::tempdir().on("create a folder for", path)?;
    let copy = folder.path().join("copy");
    copy_database(path, &copy)
        .map_err(|error| RestoreError::rows(path, &MergeError::Database(error)))?;
    let mut input = File::open(&copy).on("open", &copy)?;
    let name = free_name(path);
    durable::replace_atomic(&name, |file| zstd::stream::copy_encode(&mut input, file, 3))?;
    Ok(name)
}

fn copy_database(path: &Path, copy: &Path) -> rusqlite::Result<()> {
    let source = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut target = Connection::open(copy)?;
    let backup = Backup::new(&source, &mut target)?;
    backup.run_to_completion(STEP, Duration::from_millis(1), None)
}

/// The first unused backup name beside the database.
fn free_name(path: &Path) -> PathBuf {
    let named = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".before-restore-{number}.zst"));
        PathBuf::from(name)
    };
    let mut number = 1;
    while named(number).exists() {
        number += 1;
    }
    named(number)
}
