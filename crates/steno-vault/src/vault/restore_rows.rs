//! Restores the rows of a session: into an existing database, or as a new one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};

use super::restore::{RestoreError, is_path_taken};
use super::rows::{MAX_RESTORE_ROW, replay_rows};
use super::sealed::{SealedFileRef, SharedProblems};
use crate::DatabaseSchemas;
use crate::sqlite::rows::{MergeCounts, MergeError, RowClaim, RowLogReplay};
use steno_model::durable::{self, OnPath};

/// Pages copied per step. Other writers may proceed between steps.
const BACKUP_PAGES_PER_STEP: i32 = 1000;

/// Compares the kept rows with the database at `path`, without changing it.
pub(super) fn compare_database(
    kept: &SealedFileRef,
    path: &Path,
    force: bool,
    schemas: DatabaseSchemas,
) -> Result<MergeCounts, RestoreError> {
    let merged = with_claim(kept, force, schemas, |replay, claim| replay.compare(path, claim))?;
    merged.map_err(|error| RestoreError::from_merge_error(path, &error))
}

/// Checks that no log of another database and no dangling link is in the way of a new database.
pub(super) fn check_no_stray_files(path: &Path) -> Result<(), RestoreError> {
    if is_path_taken(path) {
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
pub(super) fn create_database(kept: &SealedFileRef, path: &Path) -> Result<(), RestoreError> {
    let bytes =
        replay_whole(kept)?.into_bytes_with_triggers().on("create a database from", &kept.path)?;
    let attributes = kept.open()?.attributes();
    durable::create_private_dir(durable::parent_folder(path))?;
    durable::replace_atomic(path, |file| {
        file.write_all(&bytes)?;
        attributes.apply_to(file)
    })?;
    Ok(())
}

/// Merges the rows into the existing database after backing it up. Returns the path of the backup.
pub(super) fn merge_rows(
    kept: &SealedFileRef,
    path: &Path,
    force: bool,
    schemas: DatabaseSchemas,
) -> Result<PathBuf, RestoreError> {
    let copy = back_up_database(path)?;
    let merged = with_claim(kept, force, schemas, |replay, claim| replay.merge(path, claim))?;
    merged.map(|_| copy).map_err(|error| RestoreError::from_merge_error(path, &error))
}

/// Runs an action on the kept rows with a claim for their session.
fn with_claim<T>(
    kept: &SealedFileRef,
    force: bool,
    schemas: DatabaseSchemas,
    action: impl FnOnce(&RowLogReplay, RowClaim<'_>) -> T,
) -> Result<T, RestoreError> {
    let header = kept.open()?.header().clone();
    let key = header.key.as_deref();
    Ok(action(&replay_whole(kept)?, RowClaim { schemas, key, force }))
}

/// Replays the kept rows. Fails if any line cannot be read, because a partial restore would lose rows.
fn replay_whole(kept: &SealedFileRef) -> Result<RowLogReplay, RestoreError> {
    let problems = SharedProblems::default();
    let replay = replay_rows(kept, MAX_RESTORE_ROW, &problems).on("read", &kept.path)?;
    let reported = problems.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match reported.first() {
        Some(problem) => Err(io::Error::other(problem.to_string())).on("read", &kept.path)?,
        None => Ok(replay),
    }
}

/// Backs up the database. The copy is compressed, so that no agent opens it by mistake.
fn back_up_database(path: &Path) -> Result<PathBuf, RestoreError> {
    let folder = tempfile::tempdir().on("create a folder for", path)?;
    let copy = folder.path().join("copy");
    copy_database(path, &copy)
        .map_err(|error| RestoreError::from_merge_error(path, &MergeError::Database(error)))?;
    let mut input = File::open(&copy).on("open", &copy)?;
    let name = free_backup_name(path);
    durable::replace_atomic(&name, |file| zstd::stream::copy_encode(&mut input, file, 3))?;
    Ok(name)
}

fn copy_database(path: &Path, copy: &Path) -> rusqlite::Result<()> {
    let source = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut target = Connection::open(copy)?;
    let backup = Backup::new(&source, &mut target)?;
    backup.run_to_completion(BACKUP_PAGES_PER_STEP, Duration::from_millis(1), None)
}

/// The first unused backup name beside the database.
fn free_backup_name(path: &Path) -> PathBuf {
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
