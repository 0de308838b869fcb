//! Copying parts of a thread's folder. Nothing outside of it is ever read: no `..`, no absolute path, no link.

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::commit::Staging;
use super::error::{ThreadError, Warning};
use crate::durable::OnPath;

/// What is kept about a thread.
const META: &str = ".meta";
/// What a thread has from others.
const CONTEXT: &str = "context";

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
    /// Copies the file or folder at `path` to below the place `to`; says where in the thread there was one.
    pub(super) fn copy(&mut self, path: &str, to: &Path) -> Result<Option<PathBuf>, ThreadError> {
        if !self.folder.exists() {
            return Ok(None);
        }
        match find(self.folder, path) {
            Found::Inside(relative) if relative.as_os_str().is_empty() => {
                self.copy_all(to)?;
                Ok(Some(relative))
            }
            Found::Inside(relative) => {
                self.copy_item(&self.folder.join(&relative), &to.join(&relative))?;
                Ok(Some(relative))
            }
            Found::Nothing => Ok(None),
            Found::Outside => {
                self.warnings.push(Warning::LeadsOut(path.to_owned()));
                Ok(None)
            }
        }
    }

    /// Copies all that is the thread's own.
    pub(super) fn copy_all(&mut self, to: &Path) -> Result<(), ThreadError> {
        self.staging.folder(to)?;
        for name in names(self.folder)? {
            if name != META && name != CONTEXT {
                self.copy_item(&self.folder.join(&name), &to.join(&name))?;
            }
        }
        Ok(())
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

/// The plain files below a thread's folder, without what is kept about it, sorted.
pub(super) fn files(
    folder: &Path,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<PathBuf>, ThreadError> {
    let mut found = Vec::new();
    let mut waiting: Vec<_> =
        names(folder)?.into_iter().filter(|name| name != META).map(PathBuf::from).collect();
    while let Some(at) = waiting.pop() {
        let path = folder.join(&at);
        let kind = fs::symlink_metadata(&path).on("open", &path)?.file_type();
        if kind.is_file() {
            found.push(at);
        } else if kind.is_dir() {
            waiting.extend(names(&path)?.into_iter().map(|name| at.join(name)));
        } else {
            warnings.push(Warning::NotCopied(path.display().to_string()));
        }
    }
    found.sort();
    Ok(found)
}

/// A path with slashes.
pub(super) fn shown(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

fn names(folder: &Path) -> Result<Vec<OsString>, ThreadError> {
    let mut names = Vec::new();
    for item in fs::read_dir(folder).on("open", folder)? {
        names.push(item.on("open", folder)?.file_name());
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
