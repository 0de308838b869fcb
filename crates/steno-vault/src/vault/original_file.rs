//! The original files of a session, for restoring them one by one.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::frame::ContentForm;
use super::restore::{RestoreError, has_kept_bytes, is_path_taken, write_kept_file};
use super::sealed::SealedFileRef;
use super::{SessionDir, restore_rows};
use crate::DatabaseSchemas;
use crate::sqlite::rows::MergeCounts;
use steno_model::durable::FileError;

/// A session file as it was last kept, or the session's rows of a database.
#[derive(Clone, Debug)]
pub struct OriginalFile {
    /// Its original location.
    pub path: PathBuf,
    kept: SealedFileRef,
    form: ContentForm,
    schemas: DatabaseSchemas,
}

impl SessionDir {
    /// The session's files as last kept, including deleted ones. A damaged sealed file is an error. `schemas` are those
    /// of the agent's databases.
    pub fn original_files(&self, schemas: DatabaseSchemas) -> Result<Vec<OriginalFile>, FileError> {
        let mut originals = Vec::new();
        for (stem, generation) in self.last_generations()? {
            let sealed = self.open_verified(&stem, generation)?;
            let form = sealed.header().form;
            let path = sealed.header().original_path();
            let kept = match form {
                ContentForm::Excerpt => continue,
                ContentForm::Pointer => self.resolve_pointer(&sealed)?.file_ref(),
                ContentForm::Bytes | ContentForm::Rows => sealed.file_ref(),
            };
            originals.push(OriginalFile { path, kept, form, schemas });
        }
        Ok(originals)
    }

    /// The latest modification time of the session's files, if known.
    pub fn last_modified(&self) -> Result<Option<SystemTime>, FileError> {
        let mut modified = None;
        for (stem, generation) in self.last_generations()? {
            let sealed = self.open_sealed(&stem, generation)?;
            if sealed.header().form != ContentForm::Excerpt {
                modified = modified.max(sealed.modified());
            }
        }
        Ok(modified)
    }
}

impl OriginalFile {
    /// Whether it is a database, of which only the session's rows are kept.
    pub fn is_database(&self) -> bool {
        self.form == ContentForm::Rows
    }

    /// Whether the file at its original location differs from the kept one.
    pub fn has_changed(&self) -> Result<bool, RestoreError> {
        if !self.path.exists() {
            return Ok(false);
        }
        match self.form {
            ContentForm::Rows => Ok(self.compare_rows(&self.path)?.has_changes()),
            _ => Ok(!has_kept_bytes(&self.kept, &self.path)?),
        }
    }

    /// Whether anything must be restored at `target`. A file or row that exists but has changed does not count: the
    /// agent may continue it.
    ///
    /// Fails if some rows are missing and others have changed.
    pub fn is_missing_at(&self, target: &Path) -> Result<bool, RestoreError> {
        if !target.exists() && is_path_taken(target) {
            // A dangling link.
            return Err(RestoreError::Taken(target.to_owned()));
        }
        if self.form != ContentForm::Rows || !target.exists() {
            return Ok(!target.exists());
        }
        let merged = self.compare_rows(target)?;
        if merged.inserted > 0 && merged.replaced > 0 {
            let (inserted, replaced) = (merged.inserted, merged.replaced);
            let reason = format!("missing rows: {inserted}, changed rows: {replaced}");
            return Err(RestoreError::mixed_rows(target, reason));
        }
        Ok(merged.inserted > 0)
    }

    fn compare_rows(&self, database: &Path) -> Result<MergeCounts, RestoreError> {
        restore_rows::compare_database(&self.kept, database, true, self.schemas)
    }

    /// Writes the kept content to `target`, with its original modification time. Rows are merged into an existing
    /// database.
    pub fn write_to(&self, target: &Path) -> Result<(), RestoreError> {
        match self.form {
            ContentForm::Rows if target.exists() => {
                restore_rows::merge_rows(&self.kept, target, false, self.schemas).map(drop)
            }
            ContentForm::Rows => {
                restore_rows::check_no_stray_files(target)?;
                restore_rows::create_database(&self.kept, target)
            }
            _ => Ok(write_kept_file(&self.kept, target)?),
        }
    }
}
