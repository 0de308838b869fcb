//! Puts back the files that an agent wrote, byte for byte and with their times.

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

/// A file that was put back, or was there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Where it stands.
    pub path: PathBuf,
    /// Whether it had to be written.
    pub written: bool,
    /// Where what stood there before is kept.
    pub backup: Option<PathBuf>,
}

/// Why nothing was put back.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The session was recorded live; no agent wrote files for it.
    #[error("the session was recorded, there are no files to put back")]
    Recorded,
    /// No file of the session was ever there to be kept.
    #[error("only the agent's history tells of the session, there are no files to put back")]
    OnlyTold,
    /// Something else stands where a file belongs.
    #[error("another file stands at: {0}")]
    Taken(PathBuf),
    /// A folder or something else that is no file stands where a file belongs.
    #[error("what stands there is not a file: {0}")]
    NoFile(PathBuf),
    /// A kept name leads out of the folder.
    #[error("not a name below a folder: {0}")]
    Escapes(String),
    /// The database that is there does not take the rows.
    #[error("the rows cannot be put back into {path}: {reason}")]
    Rows {
        /// The database.
        path: PathBuf,
        /// Why not.
        reason: String,
        /// Whether a row of the session with other content stands in the way.
        is_taken: bool,
        /// Whether a row of another session does.
        is_foreign: bool,
    },
    /// The file system said no, or the vault is damaged.
    #[error(transparent)]
    File(#[from] FileError),
}

impl RestoreError {
    pub(super) fn rows(path: &Path, error: &MergeError) -> Self {
        let is_taken = matches!(error, MergeError::Differs(_));
        let is_foreign = matches!(error, MergeError::Foreign(_));
        Self::Rows { path: path.to_owned(), reason: error.to_string(), is_taken, is_foreign }
    }

    /// Rows that can neither be left as they are nor be put back without replacing others.
    pub(super) fn mixed(path: &Path, reason: String) -> Self {
        Self::Rows { path: path.to_owned(), reason, is_taken: true, is_foreign: false }
    }

    /// Whether it can be forced.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Taken(_) | Self::Rows { is_taken: true, .. })
    }

    /// Whether what is kept is not as it was written.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::File(error) if error.source.kind() == io::ErrorKind::InvalidData)
    }

    /// Whether another session's rows are in the way, which nothing can force.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::Rows { is_foreign: true, .. })
    }
}

impl SessionDir {
    /// Puts the session's files back where they stood, or below `to`.
    ///
    /// Nothing is written when any of them would replace other content, unless `force` is given; then what stood there is
    /// kept beside it. Rows go into the database that is there, after a copy of it was made beside it.
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

    /// Puts back what the session's files held before they were rewritten: each generation beside its file, as
    /// `NAME.steno-earlier.N`.
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

    /// Where `restore` would put the session's files, and with `with_earlier` also `restore_earlier`. Writes nothing.
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

    /// A kept file that is as it was written: nothing else may say what goes where.
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
