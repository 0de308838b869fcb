//! The list of a session's sealed files as version 0.1 wrote it. The journal has taken its place; it is only read, for
//! vaults that have no journal yet.

use std::fs;

use serde::{Deserialize, Serialize};

use super::SessionDir;
use super::frame::damaged;
use super::live::FIRST_SUM;
use crate::durable::{FileError, OnPath};

/// The list's own file.
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
    /// The sealed files that the list names; none when there is no list.
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
            .ok_or_else(|| damaged("damaged list"))
            .on("read", &path)
    }
}
