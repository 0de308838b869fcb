//! The original files of a session, for restoring them one by one.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::frame::Form;
use super::restore::{RestoreError, is_same, is_taken, put_back};
use super::sealed::KeptFile;
use super::{SessionDir, restore_rows};
use crate::durable::FileError;

/// A session file as it was last kept, or the session's rows of a database.
#[derive(Clone, Debug)]
pub struct Original {
    /// Its original location.
    pub path: PathBuf,
    kept: KeptFile,
    form: Form,
}

impl SessionDir {
    /// The session's files as last kept, including deleted ones. A damaged sealed file is an error.
    pub fn originals(&self) -> Result<Vec<Original>, FileError> {
        let mut originals = Vec::new();
        for (stem, generation) in self.last_files()? {
            let sealed = self.whole_file(&stem, generation)?;
            let form = sealed.header().form;
            let path = sealed.header().place();
            let kept = match form {
                Form::Excerpt => continue,
                Form::Pointer => self.pointed_to(&sealed)?.kept(),
                Form::Bytes | Form::Rows => sealed.kept(),
            };
            originals.push(Original { path, kept, form });
        }
        Ok(originals)
    }

    /// The latest modification time of the session's files, if known.
    pub fn modified(&self) -> Result<Option<SystemTime>, FileError> {
        let mut modified = None;
        for (stem, generation) in self.last_files()? {
            let sealed = self.open_kept(&stem, generation)?;
            if sealed.header().form != Form::Excerpt {
                modified = modified.max(sealed.modified());
            }
        }
        Ok(modified)
    }
}

impl Original {
    /// Whether the file at its original location differs from the kept one.
    pub fn has_changed(&self) -> Result<bool, RestoreError> {
        if !self.path.exists() {
            return Ok(false);
        }
        match self.form {
            Form::Rows => Ok(restore_rows::compare(&self.kept, &self.path, true)?.is_change()),
            _ => Ok(!is_same(&self.kept, &self.path)?),
        }
    }

    /// Whether anything must be restored at `target`. A file or row that exists but has changed does not count: the
    /// agent may continue it.
    ///
    /// Fails if some rows are missing and others have changed.
    pub fn is_missing_at(&self, target: &Path) -> Result<bool, RestoreError> {
        if !target.exists() && is_taken(target) {
            // A dangling link.
            return Err(RestoreError::Taken(target.to_owned()));
        }
        if self.form != Form::Rows || !target.exists() {
            return Ok(!target.exists());
        }
        let merged = restore_rows::compare(&self.kept, target, true)?;
        if merged.inserted > 0 && merged.replaced > 0 {
            let (inserted, replaced) = (merged.inserted, merged.replaced);
            let reason = format!("missing rows: {inserted}, changed rows: {replaced}");
            return Err(RestoreError::mixed(target, reason));
        }
        Ok(merged.inserted > 0)
    }

    /// Writes the kept content to `target`, with its original modification time. Rows are merged into an existing
    /// database.
    pub fn put_at(&self, target: &Path) -> Result<(), RestoreError> {
        match self.form {
            Form::Rows if target.exists() => {
                restore_rows::merge(&self.kept, target, false).map(drop)
            }
            Form::Rows => {
                restore_rows::check_alone(target)?;
                restore_rows::make(&self.kept, target)
            }
            _ => Ok(put_back(&self.kept, target)?),
        }
    }
}
