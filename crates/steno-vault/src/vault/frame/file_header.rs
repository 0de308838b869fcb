//! The header of a sealed file, and the places where its session file has been.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::hex_hash::HexHash;
use super::skippable_frame::encode_skippable_frame;
use crate::vault::exact_path;

/// The header of a sealed file: which session file its bytes come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedFileHeader {
    pub(crate) steno: VaultTag,
    pub(crate) version: u32,
    /// The agent that wrote the session file.
    pub agent: String,
    /// The session it belongs to.
    pub session: String,
    /// Its name inside the session.
    pub name: String,
    /// Its path when it was first kept. After opening, its last known path.
    pub path: String,
    /// The session's file or folder at that time.
    pub root: String,
    /// How often the agent had rewritten the file before.
    pub generation: u32,
    /// The session file was found deleted. Its content is in earlier generations.
    pub gone: bool,
    /// Selects the session where the file holds several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What the kept bytes are.
    #[serde(default, skip_serializing_if = "is_default_form")]
    pub form: ContentForm,
    /// The path in hexadecimal, if it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<String>,
    /// The kept length and the end of the chain before the upgrade from version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) upgraded: Option<(u64, HexHash)>,
}

impl SealedFileHeader {
    /// The path of the session file.
    pub fn original_path(&self) -> PathBuf {
        exact_path::decode_path_bytes(self.bytes.as_deref(), &self.path)
    }
}

/// What the bytes of a sealed file are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentForm {
    /// The session file itself.
    #[default]
    Bytes,
    /// Rows of a database, as JSON Lines.
    Rows,
    /// The name of the session that keeps the file for this one too.
    Pointer,
    /// The lines of a shared file that concern this session.
    Excerpt,
}

fn is_default_form(form: &ContentForm) -> bool {
    *form == ContentForm::Bytes
}

/// Marks a header as Steno's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum VaultTag {
    #[serde(rename = "vault")]
    Vault,
}

/// The new location of a moved session file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileMove {
    pub(crate) path: String,
    pub(crate) root: String,
    /// The path in hexadecimal, if it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<String>,
}

impl FileMove {
    /// A session file found at `path` below `root`.
    pub(crate) fn from_paths(path: &Path, root: &Path) -> Self {
        let bytes = exact_path::encode_path_bytes(path);
        let [path, root] = [path, root].map(|path| path.to_string_lossy().into_owned());
        Self { path, root, bytes }
    }

    /// Whether a header already has this location.
    pub(crate) fn matches_header(&self, header: &SealedFileHeader) -> bool {
        (&self.path, &self.root, &self.bytes) == (&header.path, &header.root, &header.bytes)
    }
}

/// Encodes the header of a sealed file, and computes the start of its chain.
pub(crate) fn encode_file_header(header: &SealedFileHeader) -> (Vec<u8>, HexHash) {
    let bytes = encode_skippable_frame(header, &[]);
    let chain = HexHash(blake3::hash(&bytes));
    (bytes, chain)
}
