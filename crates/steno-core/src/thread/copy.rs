//! Copying parts of a thread's folder. Nothing outside of it is ever read: no `..`, no absolute path, no link.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::commit::Staging;
use super::error::{ThreadError, Warning};
use crate::durable::OnPath;

/// What of a thread is not copied with the thread as a whole: what it has from others, and what is kept about it.
const NOT_ITS_OWN: [&str; 2] = [".meta", "context"];

/// Where a path asked for leads to.
enum Found {
    /// To a file or folder of the thread.
    Inside(PathBuf),
    /// To nothing.
    Nothing,
    /// Out of the thread.
    Outside,
}

/// A thread's folder from which files are copied.
pub(super) struct Origin<'a> {
    pub(super) folder: &'a Path,
    pub(super) staging: &'a Staging,
    pub(super) warnings: &'a mut Vec<Warning>,
}

impl Origin<'_> {
    /// Copies the file or folder at `path` to the place `to`; says whether there was one.
    pub(super) fn copy(&mut self, path: &str, to: &Path) -> Result<bool, ThreadError> {
        match find(self.folder, path) {
            Found::Inside(relative) if relative.as_os_str().is_empty() => self.copy_all(to),
            Found::Inside(relative) => {
                self.copy_item(&self.folder.join(&relative), &to.join(&relative))?;
                Ok(true)
            }
            Found::Nothing => Ok(false),
            Found::Outside => {
                self.warnings.push(Warning::LeadsOut(path.to_owned()));
                Ok(false)
            }
        }
    }

    /// Copies all that is the thread's own.
    pub(super) fn copy_all(&mut self, to: &Path) -> Result<bool, ThreadError> {
        self.staging.folder(to)?;
        for name in names(self.folder)? {
            if !NOT_ITS_OWN.iter().any(|other| name == Path::new(other)) {
                self.copy_item(&self.folder.join(&name), &to.join(&name))?;
            }
        }
        Ok(true)
    }

    fn copy_item(&mut self, from: &Path, to: &Path) -> Result<(), ThreadError> {
        let kind = fs::symlink_metadata(from).on("open", from)?.file_type();
        if kind.is_dir() {
            self.staging.folder(to)?;
            for name in names(from)? {
                self.copy_item(&from.join(&name), &to.join(&name))?;
            }
        } else if kind.is_file() {
            self.staging.copy(from, to)?;
        } else {
            self.warnings.push(Warning::NotCopied(from.display().to_string()));
        }
        Ok(())
    }
}

/// The plain files below a thread's folder, without what is kept about it, sorted; links are not followed.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, ThreadError> {
    let mut found = Vec::new();
    for name in names(folder)? {
        if name != Path::new(NOT_ITS_OWN[0]) {
            collect(folder, name, &mut found)?;
        }
    }
    Ok(found)
}

fn collect(folder: &Path, at: PathBuf, found: &mut Vec<PathBuf>) -> Result<(), ThreadError> {
    let path = folder.join(&at);
    let kind = fs::symlink_metadata(&path).on("open", &path)?.file_type();
    if kind.is_file() {
        found.push(at);
    } else if kind.is_dir() {
        for name in names(&path)? {
            collect(folder, at.join(name), found)?;
        }
    }
    Ok(())
}

fn names(folder: &Path) -> Result<Vec<PathBuf>, ThreadError> {
    let mut names = Vec::new();
    for item in fs::read_dir(folder).on("open", folder)? {
        names.push(item.on("open", folder)?.file_name().into());
    }
    names.sort();
    Ok(names)
}

fn find(folder: &Path, path: &str) -> Found {
    let mut relative = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => continue,
            Component::Normal(name) => relative.push(name),
            _ => return Found::Outside,
        }
        match fs::symlink_metadata(folder.join(&relative)) {
            Ok(data) if data.is_symlink() => return Found::Outside,
            Ok(_) => {}
            Err(_) => return Found::Nothing,
        }
    }
    Found::Inside(relative)
}
