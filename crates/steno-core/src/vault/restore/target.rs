//! The target of a restored file: its path, what exists there, and what to do.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use super::{RestoreError, Restored};
use crate::backup;
use crate::durable::{self, FileError, OnPath};
use crate::vault::frame::{FileHeader, Form};
use crate::vault::sealed::KeptFile;
use crate::vault::{restore_rows, rows};

/// A kept file with its target path.
pub(super) struct Target {
    kept: KeptFile,
    path: PathBuf,
    task: Task,
}

enum Task {
    /// The content exists already.
    Nothing,
    /// Write the file.
    Write,
    /// Create a database from the rows.
    Make,
    /// Merge the rows into the existing database.
    Merge {
        /// Whether changed rows of this session are replaced.
        force: bool,
    },
}

impl Target {
    /// A file to restore at `path`. Never replaces anything but a file or a link. A link is replaced itself, not
    /// followed.
    pub(super) fn file(kept: KeptFile, path: PathBuf, force: bool) -> Result<Self, RestoreError> {
        let existing = fs::symlink_metadata(&path).ok();
        if existing.is_some_and(|existing| !existing.is_file() && !existing.is_symlink()) {
            return Err(RestoreError::NoFile(path));
        }
        let is_restored = is_same(&kept, &path)?;
        if is_taken(&path) && !is_restored && !force {
            return Err(RestoreError::Taken(path));
        }
        let task = if is_restored { Task::Nothing } else { Task::Write };
        Ok(Self { kept, path, task })
    }

    /// Rows to restore into the database at `path`.
    pub(super) fn rows(kept: KeptFile, path: PathBuf, force: bool) -> Result<Self, RestoreError> {
        let task = if path.exists() {
            let merged = restore_rows::compare(&kept, &path, force)?;
            if merged.is_change() { Task::Merge { force } } else { Task::Nothing }
        } else {
            restore_rows::check_alone(&path)?;
            Task::Make
        };
        Ok(Self { kept, path, task })
    }

    /// The parent folder of the target.
    pub(super) fn folder(&self) -> &Path {
        durable::parent(&self.path)
    }

    /// Restores the file or rows.
    pub(super) fn put_back(self) -> Result<Restored, RestoreError> {
        let backup = match self.task {
            Task::Nothing => None,
            Task::Write => {
                let backup = is_taken(&self.path).then(|| backup::back_up(&self.path));
                let backup = backup.transpose()?;
                put_back(&self.kept, &self.path)?;
                backup
            }
            Task::Make => restore_rows::make(&self.kept, &self.path).map(|()| None)?,
            Task::Merge { force } => {
                restore_rows::merge(&self.kept, &self.path, force).map(Some)?
            }
        };
        let written = !matches!(self.task, Task::Nothing);
        Ok(Restored { path: self.path, written, backup })
    }
}

/// Whether the name exists, even as a dangling link.
pub(in crate::vault) fn is_taken(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// The target path of a kept file: its original location, or one below `to` that no link leads out of.
pub(super) fn place(header: &FileHeader, to: Option<&Path>) -> Result<PathBuf, RestoreError> {
    let Some(to) = to else { return Ok(header.place()) };
    let is_rows = header.form == Form::Rows;
    let name = Path::new(if is_rows { rows::database_name(header) } else { &header.name });
    let is_plain = name.components().all(|part| matches!(part, Component::Normal(_)));
    let target = to.join(name);
    // A link in place of the file is replaced, but SQLite would write through it.
    let from = if is_rows { 0 } else { 1 };
    let mut steps = target.ancestors().skip(from).take_while(|step| *step != to);
    if is_plain && !steps.any(Path::is_symlink) {
        Ok(target)
    } else {
        Err(RestoreError::Escapes(header.name.clone()))
    }
}

/// Whether the target has exactly the kept bytes.
pub(in crate::vault) fn is_same(kept: &KeptFile, target: &Path) -> Result<bool, FileError> {
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
    let kept_hash = hash(&mut sealed.reader(0)).on("read", &kept.path)?;
    Ok(hash(&mut io::BufReader::new(existing)).on("read", target)? == kept_hash)
}

/// Writes the kept bytes to the target, with their original modification time and mode.
pub(in crate::vault) fn put_back(kept: &KeptFile, target: &Path) -> Result<(), FileError> {
    let sealed = kept.open()?;
    let attributes = sealed.attributes();
    durable::create_private_dir(durable::parent(target))?;
    durable::replace_atomic(target, |file| {
        io::copy(&mut sealed.reader(0), file)?;
        attributes.give_to(file)
    })
}
