//! The target of a restored file: its path, what exists there, and what to do.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use super::{RestoreError, RestoredFile};
use crate::DatabaseSchemas;
use crate::vault::frame::{ContentForm, SealedFileHeader};
use crate::vault::sealed::SealedFileRef;
use crate::vault::{restore_rows, rows};
use steno_model::backup;
use steno_model::durable::{self, FileError, OnPath};

/// A kept file with its target path.
pub(super) struct RestoreTarget {
    kept: SealedFileRef,
    path: PathBuf,
    task: RestoreTask,
}

enum RestoreTask {
    /// The content exists already.
    Nothing,
    /// Write the file.
    WriteFile,
    /// Create a database from the rows.
    CreateDatabase,
    /// Merge the rows into the existing database.
    MergeRows {
        /// Whether changed rows of this session are replaced.
        force: bool,
        schemas: DatabaseSchemas,
    },
}

impl RestoreTarget {
    /// A file to restore at `path`. Never replaces anything but a file or a link. A link is replaced itself, not
    /// followed.
    pub(super) fn for_file(
        kept: SealedFileRef,
        path: PathBuf,
        force: bool,
    ) -> Result<Self, RestoreError> {
        let existing = fs::symlink_metadata(&path).ok();
        if existing.is_some_and(|existing| !existing.is_file() && !existing.is_symlink()) {
            return Err(RestoreError::NotAFile(path));
        }
        let is_restored = has_kept_bytes(&kept, &path)?;
        if is_path_taken(&path) && !is_restored && !force {
            return Err(RestoreError::Taken(path));
        }
        let task = if is_restored { RestoreTask::Nothing } else { RestoreTask::WriteFile };
        Ok(Self { kept, path, task })
    }

    /// Rows to restore into the database at `path`.
    pub(super) fn for_rows(
        kept: SealedFileRef,
        path: PathBuf,
        force: bool,
        schemas: DatabaseSchemas,
    ) -> Result<Self, RestoreError> {
        let task = if path.exists() {
            let merged = restore_rows::compare_database(&kept, &path, force, schemas)?;
            if merged.has_changes() {
                RestoreTask::MergeRows { force, schemas }
            } else {
                RestoreTask::Nothing
            }
        } else {
            restore_rows::check_no_stray_files(&path)?;
            RestoreTask::CreateDatabase
        };
        Ok(Self { kept, path, task })
    }

    /// The parent folder of the target.
    pub(super) fn parent_folder(&self) -> &Path {
        durable::parent_folder(&self.path)
    }

    /// Restores the file or rows.
    pub(super) fn restore(self) -> Result<RestoredFile, RestoreError> {
        let backup = match self.task {
            RestoreTask::Nothing => None,
            RestoreTask::WriteFile => {
                let backup = is_path_taken(&self.path).then(|| backup::back_up(&self.path));
                let backup = backup.transpose()?;
                write_kept_file(&self.kept, &self.path)?;
                backup
            }
            RestoreTask::CreateDatabase => {
                restore_rows::create_database(&self.kept, &self.path).map(|()| None)?
            }
            RestoreTask::MergeRows { force, schemas } => {
                restore_rows::merge_rows(&self.kept, &self.path, force, schemas).map(Some)?
            }
        };
        let written = !matches!(self.task, RestoreTask::Nothing);
        Ok(RestoredFile { path: self.path, was_written: written, backup })
    }
}

/// Whether the name exists, even as a dangling link.
pub(in crate::vault) fn is_path_taken(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// The target path of a kept file: its original location, or one below `to` that no link leads out of.
pub(super) fn target_path(
    header: &SealedFileHeader,
    to: Option<&Path>,
) -> Result<PathBuf, RestoreError> {
    let Some(to) = to else { return Ok(header.original_path()) };
    let is_rows = header.form == ContentForm::Rows;
    let name = Path::new(if is_rows { rows::database_name(header) } else { &header.name });
    let is_plain = name.components().all(|part| matches!(part, Component::Normal(_)));
    let target = to.join(name);
    // A link in place of the file is replaced, but SQLite would write through it.
    let from = if is_rows { 0 } else { 1 };
    let mut steps = target.ancestors().skip(from).take_while(|step| *step != to);
    if is_plain && !steps.any(Path::is_symlink) {
        Ok(target)
    } else {
        Err(RestoreError::EscapesFolder(header.name.clone()))
    }
}

/// Whether the target has exactly the kept bytes.
pub(in crate::vault) fn has_kept_bytes(
    kept: &SealedFileRef,
    target: &Path,
) -> Result<bool, FileError> {
    let sealed = kept.open()?;
    match fs::metadata(target) {
        Ok(existing) if existing.is_file() && existing.len() == sealed.length() => {}
        Ok(_) => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error).on("open", target),
    }
    let existing = File::open(target).on("open", target)?;
    let hash = |input: &mut dyn Read| {
        let mut hasher = blake3::Hasher::new();
        io::copy(input, &mut hasher).map(|_| hasher.finalize())
    };
    let kept_hash = hash(&mut sealed.reader_from(0)).on("read", &kept.path)?;
    Ok(hash(&mut io::BufReader::new(existing)).on("read", target)? == kept_hash)
}

/// Writes the kept bytes to the target, with their original modification time and mode.
pub(in crate::vault) fn write_kept_file(
    kept: &SealedFileRef,
    target: &Path,
) -> Result<(), FileError> {
    let sealed = kept.open()?;
    let attributes = sealed.attributes();
    durable::create_private_dir(durable::parent_folder(target))?;
    durable::replace_atomic(target, |file| {
        io::copy(&mut sealed.reader_from(0), file)?;
        attributes.apply_to(file)
    })
}
