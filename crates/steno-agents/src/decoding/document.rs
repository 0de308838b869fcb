//! Shared code for formats in which a session is one JSON document: recognising it by its first bytes and parsing it
//! whole. The file may have any name, because the first byte excludes most other files.

use crate::decoding::file_head::FileHead;
use crate::decoding::json_repair;
use crate::reader::file_tree::FileTree;
use steno_model::durable::FileError;
use steno_model::json::Value;
use steno_model::problem::Problem;
use steno_vault::{FormatError, SessionBundle, SessionFile};

/// Bundles each file for which `recognises` accepts the first bytes.
pub(crate) fn find_documents(
    tree: &FileTree,
    recognises: impl Fn(&FileHead) -> bool,
) -> Result<Vec<SessionBundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree.files() {
        let bundle = SessionBundle::from_file(file);
        if recognises(&FileHead::read_document(&bundle.files[0])?) {
            bundles.push(bundle);
        }
    }
    Ok(bundles)
}

/// The only file of a session.
pub(crate) fn only_file(bundle: &SessionBundle) -> Result<&SessionFile, FormatError> {
    let missing = || FormatError::Invalid(Problem::for_file(&bundle.root, "no session file"));
    bundle.files.first().ok_or_else(missing)
}

/// Parses the whole document.
pub fn parse_document(source: &SessionFile) -> Result<Value, FormatError> {
    json_repair::parse_lenient(&source.read_bytes()?)
        .map_err(|reason| FormatError::Invalid(Problem::for_file(source.path(), reason)))
}
