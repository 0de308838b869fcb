//! Shared code for formats in which a session is one JSON document: recognising it by its first bytes and parsing it
//! whole. The file may have any name, because the first byte excludes most other files.

use super::head::Head;
use super::repair;
use crate::durable::FileError;
use crate::format::tree::Tree;
use crate::json::Value;
use crate::problem::Problem;
use steno_vault::FormatError;
use steno_vault::{Bundle, Source};

/// Bundles each file for which `recognises` accepts the first bytes.
pub(crate) fn find(
    tree: &Tree,
    recognises: impl Fn(&Head) -> bool,
) -> Result<Vec<Bundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree.files() {
        let bundle = Bundle::file(file);
        if recognises(&Head::of_document(&bundle.sources[0])?) {
            bundles.push(bundle);
        }
    }
    Ok(bundles)
}

/// The only file of a session.
pub(crate) fn only_source(bundle: &Bundle) -> Result<&Source, FormatError> {
    let missing = || FormatError::Invalid(Problem::of(&bundle.root, "no session file"));
    bundle.sources.first().ok_or_else(missing)
}

/// Parses the whole document.
pub(super) fn parse(source: &Source) -> Result<Value, FormatError> {
    repair::parse(&source.bytes()?)
        .map_err(|reason| FormatError::Invalid(Problem::of(source.path(), reason)))
}
