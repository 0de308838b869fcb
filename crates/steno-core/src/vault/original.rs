//! The files of a session as an agent wrote them, each to be looked at and put back on its own.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::frame::Form;
use super::restore::{RestoreError, is_same, is_taken, put_back};
use super::sealed::KeptFile;
use super::{SessionDir, restore_rows};
use crate::durable::FileError;

/// A file that an agent wrote, as it was kept last; of a database, the session's rows.
#[derive(Clone, Debug)]
pub struct Original {
    /// Where it stood.
    pub path: PathBuf,
    kept: KeptFile,
    form: Form,
}

impl SessionDir {
    /// The files of the session as they were last kept, those among them that the agent has purged since. A kept file that
    /// is damaged is an error.
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

    /// When the newest of its sources was last changed before it was kept, if that is known.
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
    /// Whether what stands at its place is no longer what is kept.
    pub fn has_changed(&self) -> Result<bool, RestoreError> {
        if !self.path.exists() {
            return Ok(false);
        }
        match self.form {
            Form::Rows => Ok(restore_rows::compare(&self.kept, &self.path, true)?.is_change()),
            _ => Ok(!is_same(&self.kept, &self.path)?),
        }
    }

    /// Whether any of it has to be put back at `target`. What is there and has only changed is the agent's to go on with.
    ///
    /// Rows of which some are missing and others have changed are an error: they are neither one nor the other.
    pub fn is_missing_at(&self, target: &Path) -> Result<bool, RestoreError> {
        if !target.exists() && is_taken(target) {
            // A link that leads nowhere.
            return Err(RestoreError::Taken(target.to_owned()));
        }
        if self.form != Form::Rows || !target.exists() {
            return Ok(!target.exists());
        }
        let merged = restore_rows::compare(&self.kept, target, true)?;
        if merged.inserted > 0 && merged.replaced > 0 {
            let (inserted, replaced) = (merged.inserted, merged.replaced);
            let reason = format!("of its rows {inserted} are missing and {replaced} have changed");
            return Err(RestoreError::mixed(target, reason));
        }
        Ok(merged.inserted > 0)
    }

    /// Writes what is kept to `target`, with the time that the file had; rows go into the database that is there.
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
