//! Puts back the files that an agent wrote, byte for byte and with their times.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use super::frame::Form;
use super::sealed::Sealed;
use super::{SessionDir, restore_rows, rows};
use crate::agent::sqlite::rows::MergeError;
use crate::durable::{self, FileError, OnPath};

/// A file that was put back, or was there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Where it stands.
    pub path: PathBuf,
    /// Whether it had to be written.
    pub written: bool,
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
        /// Whether a row with other content stands in the way.
        is_taken: bool,
    },
    /// The file system said no, or the vault is damaged.
    #[error(transparent)]
    File(#[from] FileError),
}

impl RestoreError {
    pub(super) fn rows(path: &Path, error: &MergeError) -> Self {
        let is_taken = matches!(error, MergeError::Differs(_));
        Self::Rows { path: path.to_owned(), reason: error.to_string(), is_taken }
    }

    /// Whether it can be forced.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Taken(_) | Self::Rows { is_taken: true, .. })
    }
}

impl SessionDir {
    /// Puts the session's files back where they stood, or below `to`.
    ///
    /// Nothing is written when any of them would replace other content, unless `force` is given. Rows go into the database
    /// that is there, after a copy of it was made beside it.
    pub fn restore(&self, to: Option<&Path>, force: bool) -> Result<Vec<Restored>, RestoreError> {
        if !self.is_imported()? {
            return Err(RestoreError::Recorded);
        }
        if self.is_only_told()? {
            return Err(RestoreError::OnlyTold);
        }
        let mut targets = Vec::new();
        for (stem, generation) in self.newest_files()? {
            let kept = self.kept_path(&stem, generation);
            let sealed = Sealed::open(&kept)?;
            if sealed.header().gone || sealed.header().form == Form::Excerpt {
                continue;
            }
            let target = target(&sealed, to)?;
            targets.push(match sealed.header().form {
                Form::Rows => Target::rows(kept, target, force)?,
                Form::Bytes | Form::Excerpt => Target::file(kept, target, force)?,
                Form::Pointer => {
                    Target::file(self.pointed_to(&sealed)?.path().to_owned(), target, force)?
                }
            });
        }
        let mut restored = Vec::new();
        for target in targets {
            target.put_back(force)?;
            restored.push(Restored { path: target.path, written: target.task != Task::Nothing });
        }
        Ok(restored)
    }
}

/// Where a kept file goes, and what is to be done there.
struct Target {
    kept: PathBuf,
    path: PathBuf,
    task: Task,
}

#[derive(PartialEq, Eq)]
enum Task {
    /// It is there already.
    Nothing,
    /// The file is written.
    Write,
    /// A database is made of the rows.
    Make,
    /// The rows go into the database that is there.
    Merge,
}

impl Target {
    fn file(kept: PathBuf, path: PathBuf, force: bool) -> Result<Self, RestoreError> {
        let is_there = is_same(&kept, &path)?;
        if path.exists() && !is_there && !force {
            return Err(RestoreError::Taken(path));
        }
        let task = if is_there { Task::Nothing } else { Task::Write };
        Ok(Self { kept, path, task })
    }

    fn rows(kept: PathBuf, path: PathBuf, force: bool) -> Result<Self, RestoreError> {
        let task = if path.exists() {
            let is_change = restore_rows::compare(&kept, &path, force)?;
            if is_change { Task::Merge } else { Task::Nothing }
        } else {
            restore_rows::check_alone(&path)?;
            Task::Make
        };
        Ok(Self { kept, path, task })
    }

    fn put_back(&self, force: bool) -> Result<(), RestoreError> {
        match self.task {
            Task::Nothing => Ok(()),
            Task::Write => Ok(put_back(&self.kept, &self.path)?),
            Task::Make => restore_rows::make(&self.kept, &self.path),
            Task::Merge => restore_rows::merge(&self.kept, &self.path, force),
        }
    }
}

fn target(sealed: &Sealed, to: Option<&Path>) -> Result<PathBuf, RestoreError> {
    let header = sealed.header();
    let Some(to) = to else { return Ok(PathBuf::from(&header.path)) };
    let name = Path::new(match header.form {
        Form::Rows => rows::database_name(header),
        Form::Bytes | Form::Pointer | Form::Excerpt => &header.name,
    });
    let plain = name.components().all(|part| matches!(part, Component::Normal(_)));
    let target = to.join(name);
    let mut above = target.ancestors().skip(1).take_while(|above| *above != to);
    if plain && !above.any(Path::is_symlink) {
        Ok(target)
    } else {
        Err(RestoreError::Escapes(header.name.clone()))
    }
}

/// Whether the target holds exactly what is kept.
pub(super) fn is_same(kept: &Path, target: &Path) -> Result<bool, FileError> {
    let sealed = Sealed::open(kept)?;
    let there = match File::open(target) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error).on("open", target),
    };
    if there.metadata().on("read", target)?.len() != sealed.length() {
        return Ok(false);
    }
    let hash = |input: &mut dyn Read| {
        let mut hasher = blake3::Hasher::new();
        io::copy(input, &mut hasher).map(|_| hasher.finalize())
    };
    let wanted = hash(&mut sealed.reader(0)).on("read", kept)?;
    Ok(hash(&mut io::BufReader::new(there)).on("read", target)? == wanted)
}

pub(super) fn put_back(kept: &Path, target: &Path) -> Result<(), FileError> {
    let sealed = Sealed::open(kept)?;
    let modified = sealed.modified();
    fs::create_dir_all(durable::parent(target)).on("create folder", target)?;
    durable::replace_atomic(target, |file| {
        io::copy(&mut sealed.reader(0), file)?;
        modified.map_or(Ok(()), |modified| file.set_modified(modified))
    })
}
