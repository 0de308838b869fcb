//! Copies files out of a thread's folder. Never reads anything outside of it: `..`, absolute paths and symlinks are
//! refused.

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::commit::StagedChange;
use super::error::{ThreadError, ThreadWarning};
use steno_model::durable::OnPath;

/// Folder of a thread's metadata.
const META_FOLDER: &str = ".meta";
/// Folder of files copied from other threads.
const CONTEXT_FOLDER: &str = "context";

/// What a requested path resolves to.
enum ResolvedPath {
    /// A file or folder of the thread.
    Inside(PathBuf),
    /// Nothing exists there.
    Nothing,
    /// A path outside of the thread.
    Outside,
}

/// Copies files from a thread's folder into a staged change.
pub(super) struct ThreadCopier<'a> {
    pub(super) folder: &'a Path,
    pub(super) staging: &'a StagedChange,
    pub(super) warnings: &'a mut Vec<ThreadWarning>,
}

impl ThreadCopier<'_> {
    /// Copies the file or folder at `path` to `to`. Returns its path in the thread, or `None` if there is nothing to
    /// copy.
    pub(super) fn copy_path(
        &mut self,
        path: &str,
        to: &Path,
    ) -> Result<Option<PathBuf>, ThreadError> {
        if !self.folder.exists() {
            return Ok(None);
        }
        match resolve_path(self.folder, path) {
            ResolvedPath::Inside(relative) if relative.as_os_str().is_empty() => {
                self.copy_all(to)?;
                Ok(Some(relative))
            }
            ResolvedPath::Inside(relative) => {
                self.copy_item(&self.folder.join(&relative), &to.join(&relative))?;
                Ok(Some(relative))
            }
            ResolvedPath::Nothing => Ok(None),
            ResolvedPath::Outside => {
                self.warnings.push(ThreadWarning::LeadsOut(path.to_owned()));
                Ok(None)
            }
        }
    }

    /// Copies all of the thread's own files.
    pub(super) fn copy_all(&mut self, to: &Path) -> Result<(), ThreadError> {
        self.staging.create_folder(to)?;
        for name in list_names(self.folder)? {
            if name != META_FOLDER && name != CONTEXT_FOLDER {
                self.copy_item(&self.folder.join(&name), &to.join(&name))?;
            }
        }
        Ok(())
    }

    fn copy_item(&mut self, from: &Path, to: &Path) -> Result<(), ThreadError> {
        let kind = fs::symlink_metadata(from).on("open", from)?.file_type();
        if kind.is_dir() {
            self.staging.create_folder(to)?;
            for name in list_names(from)? {
                self.copy_item(&from.join(&name), &to.join(&name))?;
            }
        } else if kind.is_file() {
            self.staging.copy_file(from, to)?;
        } else {
            self.warnings.push(ThreadWarning::NotCopied(from.display().to_string()));
        }
        Ok(())
    }
}

/// Lists the plain files below a thread's folder, without its metadata, sorted.
pub(super) fn list_thread_files(
    folder: &Path,
    warnings: &mut Vec<ThreadWarning>,
) -> Result<Vec<PathBuf>, ThreadError> {
    let mut found = Vec::new();
    let mut waiting: Vec<_> = list_names(folder)?
        .into_iter()
        .filter(|name| name != META_FOLDER)
        .map(PathBuf::from)
        .collect();
    while let Some(at) = waiting.pop() {
        let path = folder.join(&at);
        let kind = fs::symlink_metadata(&path).on("open", &path)?.file_type();
        if kind.is_file() {
            found.push(at);
        } else if kind.is_dir() {
            waiting.extend(list_names(&path)?.into_iter().map(|name| at.join(name)));
        } else {
            warnings.push(ThreadWarning::NotCopied(path.display().to_string()));
        }
    }
    found.sort();
    Ok(found)
}

/// Formats a path with slashes.
pub(super) fn slash_path(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

fn list_names(folder: &Path) -> Result<Vec<OsString>, ThreadError> {
    let mut names = Vec::new();
    for item in fs::read_dir(folder).on("open", folder)? {
        names.push(item.on("open", folder)?.file_name());
    }
    names.sort();
    Ok(names)
}

fn resolve_path(folder: &Path, path: &str) -> ResolvedPath {
    let mut relative = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => continue,
            Component::Normal(name) => relative.push(name),
            _ => return ResolvedPath::Outside,
        }
        match fs::symlink_metadata(folder.join(&relative)) {
            Ok(data) if data.is_symlink() => return ResolvedPath::Outside,
            Ok(_) => {}
            Err(_) => return ResolvedPath::Nothing,
        }
    }
    ResolvedPath::Inside(relative)
}
