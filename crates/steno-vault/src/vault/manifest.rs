//! The manifest of sealed files that version 0.1 wrote. The journal replaces it. It is only read, for vaults without
//! a journal.

use serde::{Deserialize, Serialize};

use super::SessionDir;
use super::frame::damage_error;
use crate::line_hash::FIRST_LINE_HASH;
use steno_cipher::store_fs;
use steno_model::durable::{FileError, OnPath};

/// The manifest's file name.
pub(super) const MANIFEST_FILE: &str = "files.json";

#[derive(Serialize, Deserialize)]
struct FileManifest {
    check: String,
    files: Vec<String>,
}

impl FileManifest {
    fn is_as_written(&self, bytes: &[u8]) -> bool {
        let check = FIRST_LINE_HASH.next_hash(self.files.join("\n").as_bytes());
        let text = serde_json::to_string(self).expect("a list of names") + "\n";
        self.check == check.as_str() && text.as_bytes() == bytes
    }
}

impl SessionDir {
    /// The sealed files in the manifest; empty if there is no manifest.
    pub(super) fn listed_by_manifest(&self) -> Result<Vec<String>, FileError> {
        let path = self.path.join(MANIFEST_FILE);
        let bytes = match store_fs::read(&path) {
            Ok(bytes) if !bytes.is_empty() => bytes,
            _ => return Ok(Vec::new()),
        };
        let manifest = serde_json::from_slice::<FileManifest>(&bytes).ok();
        let manifest = manifest.filter(|manifest| manifest.is_as_written(&bytes));
        manifest
            .map(|manifest| manifest.files)
            .ok_or_else(|| damage_error("damaged manifest"))
            .on("read", &path)
    }
}
