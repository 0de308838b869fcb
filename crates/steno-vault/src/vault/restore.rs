//! Restores session files byte for byte, with their modification times.

mod target;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::SessionDir;
use super::frame::ContentForm;
use super::sealed::SealedFile;
use super::verify::check_file_identity;
use crate::DatabaseSchemas;
use crate::sqlite::rows::MergeError;
use steno_model::backup;
use steno_model::durable::{self, FileError, OnPath};

use self::target::RestoreTarget;
pub(super) use self::target::{has_kept_bytes, is_path_taken, write_kept_file};

/// A restored file, or one that did not need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredFile {
    /// Its location.
    pub path: PathBuf,
    /// Whether it was written. False if it already had this content.
    pub was_written: bool,
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
    OnlyExcerpts,
    /// Another file exists at the target.
    #[error("another file exists: {0}")]
    Taken(PathBuf),
    /// The target is a folder or another kind of non-file.
    #[error("not a file: {0}")]
    NotAFile(PathBuf),
    /// A kept name leads out of the target folder.
    #[error("the name leads out of the folder: {0}")]
    EscapesFolder(String),
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
    pub(super) fn from_merge_error(path: &Path, error: &MergeError) -> Self {
        let is_taken = matches!(error, MergeError::Differs(_));
        let is_foreign = matches!(error, MergeError::Foreign(_));
        Self::Rows { path: path.to_owned(), reason: error.to_string(), is_taken, is_foreign }
    }

    /// Some rows are missing and others have changed.
    pub(super) fn mixed_rows(path: &Path, reason: String) -> Self {
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
    /// backed up. Rows are merged into an existing database after it was backed up; `schemas` are those of the agent's
    /// databases.
    pub fn restore(
        &self,
        to: Option<&Path>,
        force: bool,
        schemas: DatabaseSchemas,
    ) -> Result<Vec<RestoredFile>, RestoreError> {
        if !self.is_imported()? {
            // Without its lines in a damaged journal, an imported session looks like a recorded one.
            if let Some(fault) = self.find_faults()?.first() {
                let error = io::Error::new(io::ErrorKind::InvalidData, fault.reason.clone());
                return Err(error).on("restore from", &fault.path)?;
            }
            return Err(RestoreError::Recorded);
        }
        if self.has_only_excerpts()? {
            return Err(RestoreError::OnlyExcerpts);
        }
        let mut targets = Vec::new();
        for (stem, generation) in self.last_generations()? {
            let sealed = self.open_verified(&stem, generation)?;
            let kept = sealed.file_ref();
            if sealed.header().form == ContentForm::Excerpt {
                continue;
            }
            let target = target::target_path(sealed.header(), to)?;
            targets.push(match sealed.header().form {
                ContentForm::Rows => RestoreTarget::for_rows(kept, target, force, schemas)?,
                ContentForm::Bytes | ContentForm::Excerpt => {
                    RestoreTarget::for_file(kept, target, force)?
                }
                ContentForm::Pointer => RestoreTarget::for_file(
                    self.resolve_pointer(&sealed)?.file_ref(),
                    target,
                    force,
                )?,
            });
        }
        restore_all(targets)
    }

    /// Restores earlier generations beside the session's files, as `NAME.steno-earlier.N`.
    pub fn restore_earlier(
        &self,
        to: Option<&Path>,
        force: bool,
    ) -> Result<Vec<RestoredFile>, RestoreError> {
        let last = self.last_generations()?;
        let mut targets = Vec::new();
        for (stem, newest) in self.newest_generations()? {
            for generation in 0..=newest {
                if last.contains(&(stem.clone(), generation)) {
                    continue;
                }
                let sealed = self.open_verified(&stem, generation)?;
                let header = sealed.header();
                if header.form == ContentForm::Bytes && !header.gone {
                    let path = backup::earlier_name(&target::target_path(header, to)?, generation);
                    targets.push(RestoreTarget::for_file(sealed.file_ref(), path, force)?);
                }
            }
        }
        restore_all(targets)
    }

    /// The files that `restore` would write, and with `with_earlier` also `restore_earlier`. Writes nothing.
    pub fn restore_targets(
        &self,
        to: Option<&Path>,
        with_earlier: bool,
    ) -> Result<Vec<PathBuf>, RestoreError> {
        let mut files = self.last_generations()?;
        if with_earlier {
            let newest = self.newest_generations()?.into_iter();
            files.extend(newest.flat_map(|(stem, newest)| {
                (0..=newest).map(move |generation| (stem.clone(), generation))
            }));
        }
        let mut targets = BTreeSet::new();
        for (stem, generation) in files {
            let sealed = self.open_verified(&stem, generation)?;
            if sealed.header().form != ContentForm::Excerpt {
                targets.insert(target::target_path(sealed.header(), to)?);
            }
        }
        Ok(targets.into_iter().collect())
    }

    /// Opens a sealed file after checking its header and all frames, so that no tampered bytes are written, and
    /// nothing to a tampered path.
    pub(super) fn open_verified(
        &self,
        stem: &str,
        generation: u32,
    ) -> Result<SealedFile, FileError> {
        let path = self.sealed_path(stem, generation);
        let mut sealed = self.open_sealed(stem, generation)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        check_file_identity(sealed.header(), self, &name).on("read", &path)?;
        sealed.check_chain()?;
        sealed.check_every_frame()?;
        Ok(sealed)
    }
}

fn restore_all(targets: Vec<RestoreTarget>) -> Result<Vec<RestoredFile>, RestoreError> {
    let folders: BTreeSet<&Path> = targets.iter().map(RestoreTarget::parent_folder).collect();
    folders.into_iter().for_each(durable::remove_leftovers);
    targets.into_iter().map(RestoreTarget::restore).collect()
}
