//! Artifacts: files that a flow wrote to `runs/<run id>/artifacts`. Large ones are compressed.
//!
//! Names are relative paths inside that folder. Symlinks are not followed. Files in `files/` are never compressed.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;

use super::error::RunStoreError;
use super::folder;
use super::run_id::RunId;
use super::store::RunStore;
use steno_model::durable::{self, FileError, OnPath};
use steno_model::timestamp::Timestamp;

/// Folder of the artifacts in a run's folder.
const ARTIFACTS_FOLDER: &str = "artifacts";
/// Folder of generated files among the artifacts.
const FILES_FOLDER: &str = "files";
/// Suffix of a compressed artifact.
const GZIP_SUFFIX: &str = ".gz";
/// Size in bytes from which artifacts are compressed.
const MIN_COMPRESSED_BYTES: usize = 10 * 1024;

/// Name, size and type of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactInfo {
    /// The name, without the suffix of a compressed file.
    pub name: String,
    /// Bytes on disk.
    pub size: u64,
    /// Whether it is stored compressed.
    pub compressed: bool,
    /// When it was written.
    pub created_at: Option<Timestamp>,
    /// The type, from the suffix: `specification`, `diff`, `json`, `text`, `code`, `binary` or `unknown`.
    #[serde(rename = "type")]
    pub kind: &'static str,
}

/// The type of an artifact from its name, and whether it should be compressed.
pub fn artifact_type(name: &str) -> (&'static str, bool) {
    let ending = Path::new(name).extension().map(|ending| ending.to_string_lossy().to_lowercase());
    match ending.as_deref().unwrap_or_default() {
        "md" => ("specification", true),
        "diff" | "patch" => ("diff", true),
        "json" => ("json", true),
        "txt" | "log" => ("text", true),
        "go" | "py" | "js" | "ts" | "java" | "rb" => ("code", true),
        "png" | "jpg" | "jpeg" | "gif" | "pdf" | "zip" | "tar" | "gz" => ("binary", false),
        _ => ("unknown", true),
    }
}

impl RunStore {
    /// Saves an artifact of a run, compressed if that is worthwhile.
    pub fn save_artifact(&self, id: &RunId, name: &str, bytes: &[u8]) -> Result<(), RunStoreError> {
        let path = self.artifact_path(id, name)?;
        durable::create_private_dir(durable::parent_folder(&path))?;
        let packed = compressed_path(&path);
        let is_generated = Path::new(name).starts_with(FILES_FOLDER);
        if artifact_type(name).1 && bytes.len() >= MIN_COMPRESSED_BYTES && !is_generated {
            durable::replace_atomic(&packed, |file| folder::write_gzip(bytes, file))?;
            durable::remove_file(&path)?;
        } else {
            durable::write_atomic(&path, bytes)?;
            durable::remove_file(&packed)?;
        }
        Ok(())
    }

    /// Saves a generated file of a run; it becomes the artifact `files/NAME`.
    pub fn save_file(&self, id: &RunId, name: &str, bytes: &[u8]) -> Result<(), RunStoreError> {
        self.save_artifact(id, &format!("{FILES_FOLDER}/{name}"), bytes)
    }

    /// Loads an artifact of a run, decompressed.
    pub fn load_artifact(&self, id: &RunId, name: &str) -> Result<Vec<u8>, RunStoreError> {
        let path = self.artifact_path(id, name)?;
        let packed = compressed_path(&path);
        let has_packed = folder::is_plain_file(&packed) && artifact_type(name).1;
        if has_packed {
            let bytes = fs::read(&packed).on("read", &packed)?;
            let corrupt = |problem| RunStoreError::CorruptArtifact { id: id.clone(), problem };
            match folder::decompress_bytes(&packed, bytes) {
                Ok(bytes) => return Ok(bytes),
                // Another program may have been interrupted before it removed the uncompressed file.
                Err(_) if folder::is_plain_file(&path) => {}
                Err(problem) => return Err(corrupt(problem)),
            }
        }
        if !folder::is_plain_file(&path) {
            return Err(self.artifact_not_found(id, name));
        }
        Ok(fs::read(&path).on("read", &path)?)
    }

    /// Describes one artifact.
    pub fn artifact_info(&self, id: &RunId, name: &str) -> Result<ArtifactInfo, RunStoreError> {
        let artifacts = self.list_artifacts(id)?;
        let found = artifacts.into_iter().find(|artifact| artifact.name == name);
        found.ok_or_else(|| self.artifact_not_found(id, name))
    }

    /// Lists all artifacts of a run by name, generated files included.
    pub fn list_artifacts(&self, id: &RunId) -> Result<Vec<ArtifactInfo>, RunStoreError> {
        let base = self.run_folder(id).join(ARTIFACTS_FOLDER);
        let mut found = Vec::new();
        let mut folders = vec![base.clone()];
        while let Some(folder) = folders.pop() {
            let listing = match fs::read_dir(&folder).on("read folder", &folder) {
                Err(error) if error.is_missing() => continue,
                other => other?,
            };
            for item in listing.flatten() {
                let kind = item.file_type().on("open", &item.path())?;
                if kind.is_dir() {
                    folders.push(item.path());
                } else if kind.is_file() {
                    found.extend(describe_artifact(&base, &item.path())?);
                }
            }
        }
        // If there are two files of one name, the compressed one is used, as in `load_artifact`.
        found.sort_by(|a, b| (&a.name, b.compressed).cmp(&(&b.name, a.compressed)));
        found.dedup_by(|a, b| a.name == b.name);
        Ok(found)
    }

    /// Removes an artifact, compressed or not.
    pub fn delete_artifact(&self, id: &RunId, name: &str) -> Result<(), RunStoreError> {
        let path = self.artifact_path(id, name)?;
        let packed = Some(compressed_path(&path)).filter(|_| artifact_type(name).1);
        let there: Vec<PathBuf> =
            packed.into_iter().chain([path]).filter(|path| folder::is_plain_file(path)).collect();
        if there.is_empty() {
            return Err(self.artifact_not_found(id, name));
        }
        for path in there {
            durable::remove_file(&path)?;
        }
        Ok(())
    }

    /// The path of an uncompressed artifact.
    fn artifact_path(&self, id: &RunId, name: &str) -> Result<PathBuf, RunStoreError> {
        let relative = Path::new(name);
        let is_plain = |part: Component| matches!(part, Component::Normal(_));
        let unsafe_name = || RunStoreError::Unsafe {
            what: "invalid artifact name",
            path: self.run_folder(id),
            name: name.to_owned(),
        };
        if name.is_empty() || name.ends_with('/') || !relative.components().all(is_plain) {
            return Err(unsafe_name());
        }
        let mut path = self.run_folder(id).join(ARTIFACTS_FOLDER);
        for part in relative.components() {
            // A symlink on the way would lead outside of the run.
            if fs::symlink_metadata(&path).is_ok_and(|it| it.is_symlink()) {
                return Err(unsafe_name());
            }
            path.push(part);
        }
        Ok(path)
    }

    fn artifact_not_found(&self, id: &RunId, name: &str) -> RunStoreError {
        RunStoreError::ArtifactNotFound { id: id.clone(), name: name.to_owned() }
    }
}

/// Describes the file of an artifact below `base`; `None` if its path is not UTF-8.
fn describe_artifact(base: &Path, path: &Path) -> Result<Option<ArtifactInfo>, FileError> {
    let Some(stored) = path.strip_prefix(base).ok().and_then(Path::to_str) else {
        return Ok(None);
    };
    let stored = stored.replace(std::path::MAIN_SEPARATOR, "/");
    let metadata = fs::metadata(path).on("open", path)?;
    let modified = metadata.modified().on("open", path)?;
    let created_at = jiff::Timestamp::try_from(modified).ok();
    // A name that ends in `.gz` and is not worth compressing was saved under that name.
    let unpacked = stored.strip_suffix(GZIP_SUFFIX).filter(|name| artifact_type(name).1);
    let unpacked = unpacked.filter(|name| !Path::new(name).starts_with(FILES_FOLDER));
    let name = unpacked.unwrap_or(&stored).to_owned();
    Ok(Some(ArtifactInfo {
        size: metadata.len(),
        compressed: unpacked.is_some(),
        created_at: created_at.map(|at| Timestamp::from_instant(at, 9)),
        kind: artifact_type(&name).0,
        name,
    }))
}

fn compressed_path(path: &Path) -> PathBuf {
    let mut packed = path.as_os_str().to_owned();
    packed.push(GZIP_SUFFIX);
    packed.into()
}
