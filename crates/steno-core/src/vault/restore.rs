//! Puts back the files that an agent wrote, byte for byte and with their times.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use super::SessionDir;
use super::sealed::Sealed;
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
    /// Something else stands where a file belongs.
    #[error("another file stands at: {0}")]
    Taken(PathBuf),
    /// A kept name leads out of the folder.
    #[error("not a name below a folder: {0}")]
    Escapes(String),
    /// The file system said no, or the vault is damaged.
    #[error(transparent)]
    File(#[from] FileError),
}

impl SessionDir {
    /// Puts the session's files back where they stood, or below `to`.
    ///
    /// Nothing is written when any of them would replace other content, unless `force` is given.
    pub fn restore(&self, to: Option<&Path>, force: bool) -> Result<Vec<Restored>, RestoreError> {
        if !self.is_imported()? {
            return Err(RestoreError::Recorded);
        }
        let mut targets = Vec::new();
        for file in self.original_files()? {
            let target = file.target(to)?;
            let same = file.is_same_as(&target)?;
            if target.exists() && !same && !force {
                return Err(RestoreError::Taken(target));
            }
            targets.push((file, target, same));
        }
        let mut restored = Vec::new();
        for (file, path, same) in targets {
            if !same {
                file.put_at(&path)?;
            }
            restored.push(Restored { path, written: !same });
        }
        Ok(restored)
    }

    /// The files that the session had when it was last kept.
    pub fn original_files(&self) -> Result<Vec<OriginalFile>, FileError> {
        let mut files = Vec::new();
        for (stem, generation) in self.newest_files()? {
            let kept = self.kept_path(&stem, generation);
            let header = Sealed::open(&kept)?.header().clone();
            if !header.gone {
                files.push(OriginalFile { kept, path: header.path.into(), name: header.name });
            }
        }
        Ok(files)
    }
}

/// A file that an agent wrote, as it was kept last.
#[derive(Clone, Debug)]
pub struct OriginalFile {
    /// Where it stood.
    pub path: PathBuf,
    name: String,
    kept: PathBuf,
}

impl OriginalFile {
    fn target(&self, to: Option<&Path>) -> Result<PathBuf, RestoreError> {
        let Some(to) = to else { return Ok(self.path.clone()) };
        let name = Path::new(&self.name);
        let plain = name.components().all(|part| matches!(part, Component::Normal(_)));
        let target = to.join(name);
        let mut above = target.ancestors().skip(1).take_while(|above| *above != to);
        if plain && !above.any(Path::is_symlink) {
            Ok(target)
        } else {
            Err(RestoreError::Escapes(self.name.clone()))
        }
    }

    /// Whether `target` holds exactly what is kept.
    pub fn is_same_as(&self, target: &Path) -> Result<bool, FileError> {
        let sealed = Sealed::open(&self.kept)?;
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
        let wanted = hash(&mut sealed.reader(0)).on("read", &self.kept)?;
        Ok(hash(&mut io::BufReader::new(there)).on("read", target)? == wanted)
    }

    /// Writes what is kept to `target`, with the time that the file had.
    pub fn put_at(&self, target: &Path) -> Result<(), FileError> {
        let sealed = Sealed::open(&self.kept)?;
        let modified = sealed.modified();
        fs::create_dir_all(durable::parent(target)).on("create folder", target)?;
        durable::replace_atomic(target, |file| {
            io::copy(&mut sealed.reader(0), file)?;
            modified.map_or(Ok(()), |modified| file.set_modified(modified))
        })
    }
}
