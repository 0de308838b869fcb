//! Restores session files byte for byte, with their modification times.

mod target;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::SessionDir;
use super::frame::Form;
use super::sealed::Sealed;
use super::verify::check_header;
use crate::backup;
use crate::durable::{self, FileError, OnPath};
use steno_vault::sqlite::rows::MergeError;

use self::target::Target;
pub(super) use self::target::{is_same, is_taken, put_back};

/// A restored file, or one that did not need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Its location.
    pub path: PathBuf,
    /// Whether it was written. False if it already had this content.
    pub written: bool,
    /// The backup of the replaced file.
    pub backup: Option<PathBuf>,
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The session was recorded live, so it has no session files.
    #[error("the session was recorded live, so it has no files to restore")]
    Recorded,
    /// The vault has only excerpts about the session.
    #[error("the session is known only from the agent's history, so it has no files to restore")]
    OnlyTold,
    /// Another file exists at the target.
    #[error("another file exists: {0}")]
    Taken(PathBuf),
    /// The target is a folder or another kind of non-file.
    #[error("not a file: {0}")]
    NoFile(PathBuf),
    /// A kept name leads out of the target folder.
    #[error("the name leads out of the folder: {0}")]
    Escapes(String),
    /// The rows cannot be merged into the existing database.
    #[error("could not restore the rows into {path}: {reason}")]
    Rows {
        /// The database.
        path: PathBuf,
        /// Why.
        reason: String,
        /// Whether rows of this session with other content are in the way.
        is_taken: bool,
        /// Whether rows of another session are in the way.
        is_foreign: bool,
    },
    /// An I/O error, or damage in the vault.
    #[error(transparent)]
    File(#[from] FileError),
}

impl RestoreError {
    pub(super) fn rows(path: &Path, error: &MergeError) -> Self {
        let is_taken = matches!(error, MergeError::Differs(_));
        let is_foreign = matches!(error, MergeError::Foreign(_));
        Self::Rows { path: path.to_owned(), reason: error.to_string(), is_taken, is_foreign }
    }

    /// Some rows are missing and others have changed.
    pub(super) fn mixed(path: &Path, reason: String) -> Self {
        Self::Rows { path: path.to_owned(), reason, is_taken: true, is_foreign: false }
    }

    /// Whether `force` would help.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Taken(_) | Self::Rows { is_taken: true, .. })
    }

    /// Whether the vault is damaged.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::File(error) if error.source.kind() == io::ErrorKind::InvalidData)
    }

    /// Whether rows of another session are in the way. `force` does not help.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::Rows { is_foreign: true, .. })
    }
}

impl SessionDir {
    /// Restores the session's files at their original locations, or below `to`.
    ///
    /// If any file would replace other content, nothing is written, unless `force` is set: then the other content is
    /// backed up. Rows are merged into an existing database after it was backed up.
    pub fn restore(&self, to: Option<&Path>, force: bool) -> Result<Vec<Restored>, RestoreError> {
        if !self.is_imported()? {
            return Err(RestoreError::Recorded);
        }
        if self.is_only_told()? {
            return Err(RestoreError::OnlyTold);
        }
        let mut targets = Vec::new();
        for (stem, generation) in self.last_files()? {
            let sealed = self.whole_file(&stem, generation)?;
            let kept = sealed.kept();
            if sealed.header().form == Form::Excerpt {
                continue;
            }
            let target = target::place(sealed.header(), to)?;
            targets.push(match sealed.header().form {
                Form::Rows => Target::rows(kept, target, force)?,
                Form::Bytes | Form::Excerpt => Target::file(kept, target, force)?,
                Form::Pointer => Target::file(self.pointed_to(&sealed)?.kept(), target, force)?,
            });
        }
        put_all_back(targets)
    }

    /// Restores earlier generations beside the session's files, as `NAME.steno-earlier.N`.
    pub fn restore_earlier(
        &self,
        to: Option<&Path>,
        force: bool,
    ) -> Result<Vec<Restored>, RestoreError> {
        let last = self.last_files()?;
        let mut targets = Vec::new();
        for (stem, newest) in self.newest_files()? {
            for generation in 0..=newest {
                if last.contains(&(stem.clone(), generation)) {
                    continue;
                }
                let sealed = self.whole_file(&stem, generation)?;
                let header = sealed.header();
                if header.form == Form::Bytes && !header.gone {
                    let path = backup::earlier_name(&target::place(header, to)?, generation);
                    targets.push(Target::file(sealed.kept(), path, force)?);
                }
            }
        }
        put_all_back(targets)
    }

    /// The files that `restore` would write, and with `with_earlier` also `restore_earlier`. Writes nothing.
    pub fn restore_targets(
        &self,
        to: Option<&Path>,
        with_earlier: bool,
    ) -> Result<Vec<PathBuf>, RestoreError> {
        let mut files = self.last_files()?;
        if with_earlier {
            let newest = self.newest_files()?.into_iter();
            files.extend(newest.flat_map(|(stem, newest)| {
                (0..=newest).map(move |generation| (stem.clone(), generation))
            }));
        }
        let mut targets = BTreeSet::new();
        for (stem, generation) in files {
            let sealed = self.whole_file(&stem, generation)?;
            if sealed.header().form != Form::Excerpt {
                targets.insert(target::place(sealed.header(), to)?);
            }
        }
        Ok(targets.into_iter().collect())
    }

    /// Opens a sealed file after checking its header and all frames, so that nothing is written to a tampered path.
    pub(super) fn whole_file(&self, stem: &str, generation: u32) -> Result<Sealed, FileError> {
        let path = self.kept_path(stem, generation);
        let mut sealed = self.open_kept(stem, generation)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        check_header(sealed.header(), self, &name).on("read", &path)?;
        sealed.check_all()?;
        Ok(sealed)
    }
}

fn put_all_back(targets: Vec<Target>) -> Result<Vec<Restored>, RestoreError> {
    let folders: BTreeSet<&Path> = targets.iter().map(Target::folder).collect();
    folders.into_iter().for_each(durable::remove_leftovers);
    targets.into_iter().map(Target::put_back).collect()
}
