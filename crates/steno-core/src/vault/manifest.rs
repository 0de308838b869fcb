//! The list of a session's sealed files, so that one that was removed shows.
//!
//! It is replaced whenever a file is added and never synced: after a crash it may lack the newest files, never name
//! one that was not there.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::SessionDir;
use super::frame::damaged;
use super::live::{FIRST_SUM, Sum};
use crate::durable::{self, FileError, OnPath};

/// The list's own file.
pub(super) const MANIFEST: &str = "files.json";

#[derive(Serialize, Deserialize)]
struct Manifest {
    check: String,
    files: Vec<String>,
}

impl Manifest {
    fn new(files: Vec<String>) -> Self {
        let check = check(&files).as_str().to_owned();
        Self { check, files }
    }

    fn print(&self) -> String {
        serde_json::to_string(self).expect("a list of names") + "\n"
    }
}

impl SessionDir {
    fn manifest_path(&self) -> PathBuf {
        self.path.join(MANIFEST)
    }

    /// Writes down which sealed files there are now.
    pub(super) fn write_manifest(&self) -> Result<(), FileError> {
        let files = self.kept_files()?;
        let names = files.iter().map(|(stem, generation)| {
            let path = self.kept_path(stem, *generation);
            path.file_name().unwrap_or_default().to_string_lossy().into_owned()
        });
        let text = Manifest::new(names.collect()).print();
        let path = self.manifest_path();
        if fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            return Ok(());
        }
        durable::replace_unsynced(&path, text.as_bytes())?;
        durable::sync_dir(self.path())
    }

    /// The sealed files that the list names; none when there is no list.
    pub(super) fn listed_files(&self) -> Result<Vec<String>, FileError> {
        let path = self.manifest_path();
        let bytes = match fs::read(&path) {
            Ok(bytes) if !bytes.is_empty() => bytes,
            _ => return Ok(Vec::new()),
        };
        let read = serde_json::from_slice::<Manifest>(&bytes).ok();
        let manifest = read
            .filter(|manifest| Manifest::new(manifest.files.clone()).print().as_bytes() == bytes);
        manifest
            .map(|manifest| manifest.files)
            .ok_or_else(|| damaged("damaged list"))
            .on("read", &path)
    }
}

fn check(files: &[String]) -> Sum {
    FIRST_SUM.next(files.join("\n").as_bytes())
}
