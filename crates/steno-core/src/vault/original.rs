//! The files of a session as an agent wrote them, each to be looked at and put back on its own.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::SessionDir;
use super::frame::Form;
use super::restore::{is_same, put_back};
use super::sealed::Sealed;
use crate::durable::FileError;

/// A file that an agent wrote, as it was kept last.
#[derive(Clone, Debug)]
pub struct Original {
    /// Where it stood.
    pub path: PathBuf,
    kept: PathBuf,
    modified: Option<SystemTime>,
}

impl SessionDir {
    /// The files of the session as they were last kept, those among them that the agent has purged since.
    pub fn originals(&self) -> Result<Vec<Original>, FileError> {
        let mut originals = Vec::new();
        for (stem, generation) in self.last_files()? {
            let kept = self.kept_path(&stem, generation);
            let sealed = Sealed::open(&kept)?;
            let (header, modified) = (sealed.header().clone(), sealed.modified());
            if header.form != Form::Excerpt {
                originals.push(Original { path: PathBuf::from(header.path), kept, modified });
            }
        }
        Ok(originals)
    }
}

impl Original {
    /// When it was last changed before it was kept, if that is known.
    pub fn modified(&self) -> Option<SystemTime> {
        self.modified
    }

    /// Whether the file that stands at its place is no longer what is kept.
    pub fn has_changed(&self) -> Result<bool, FileError> {
        Ok(self.path.exists() && !is_same(&self.kept, &self.path)?)
    }

    /// Writes what is kept to `target`, with the time that the file had.
    pub fn put_at(&self, target: &Path) -> Result<(), FileError> {
        put_back(&self.kept, target)
    }
}
