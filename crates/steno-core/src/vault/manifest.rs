//! The manifest of sealed files that version 0.1 wrote. The journal replaces it. It is only read, for vaults without
//! a journal.

use std::fs;

use serde::{Deserialize, Serialize};

use super::SessionDir;
use super::frame::damaged;
use super::live::FIRST_SUM;
use crate::durable::{FileError, OnPath};

/// The manifest's file name.
pub(super) const MANIFEST: &str = "files.json";

#[derive(Serialize, Deserialize)]
struct Manifest {
    check: String,
    files: Vec<String>,
}

impl Manifest {
    fn is_as_written(&self, bytes: &[u8]) -> bool {
        let check = FIRST_SUM.next(self.files.join("\n").as_bytes());
        let text = serde_json::to_string(self).expect("a list of names") + "\n";
        self.check == check.as_str() && text.as_bytes() == bytes
    }
}

impl SessionDir {
    /// The sealed files in the manifest; empty if there is no manifest.
    pub(super) fn listed_by_manifest(&self) -> Result<Vec<String>, FileError> {
        let path = self.path.join(MANIFEST);
        let bytes = match fs::read(&path) {
            Ok(bytes) if !bytes.is_empty() => bytes,
            _ => return Ok(Vec::new()),
        };
        let manifest = serde_json::from_slice::<Manifest>(&bytes).ok();
        let manifest = manifest.filter(|manifest| manifest.is_as_written(&bytes));
        manifest
            .map(|manifest| manifest.files)
            .ok_or_else(|| damaged("damaged manifest"))
            .on("read", &path)
    }
}
