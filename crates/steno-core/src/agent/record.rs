//! Shared code for readers of JSON record files: finding candidates, naming sessions, and rendering values as text.
//!
//! Only files with a JSON extension are candidates, because a file may have noise before its first record.

pub(crate) mod blocks;

use crate::agent::fields::{self, text};
use crate::agent::head::Head;
use crate::agent::{attachment, json_lines};
use crate::durable::FileError;
use crate::format::tree::Tree;
use crate::json::{Object, Value};
use crate::problem::Problem;
use steno_vault::{Bundle, Source};

/// Parses a whole file as one object. The inner error says why it is not one.
pub(crate) fn document(source: &Source) -> Result<Result<Object, Problem>, FileError> {
    Ok(json_lines::object(&source.bytes()?).map_err(|why| Problem::of(source.path(), why)))
}

/// Bundles each JSON file with a head that `is_wanted` accepts. The root itself may be a file of any name.
pub(crate) fn candidates(
    tree: &Tree,
    is_wanted: impl Fn(&Head) -> bool,
) -> Result<Vec<Bundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree.files() {
        let extension = file.extension().and_then(|extension| extension.to_str());
        if file != tree.root() && !matches!(extension, Some("json" | "jsonl")) {
            continue;
        }
        let bundle = Bundle::file(file);
        if is_wanted(&Head::of(&bundle.sources[0])?) {
            bundles.push(bundle);
        }
    }
    Ok(bundles)
}

/// Adds another file of the same session. A JSON Lines log is put before the document that it continues.
pub(crate) fn put_log_first(bundle: &mut Bundle, mut file: Bundle) {
    let is_log =
        |bundle: &Bundle| bundle.sources.iter().any(|source| source.name().ends_with(".jsonl"));
    if is_log(&file) && !is_log(bundle) {
        std::mem::swap(bundle, &mut file);
    }
    bundle.sources.extend(file.sources);
}

/// The file name without its extension: the id of a session that states none.
pub(crate) fn stem(source: &Source) -> &str {
    let name = source.name().rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// A value as text: a string as it is, a list as the texts of its blocks, anything else as JSON.
pub(crate) fn said(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(block_text).collect::<Vec<_>>().join("\n"),
        other => fields::plain(other),
    }
}

fn block_text(block: &Value) -> String {
    let Some(object) = block.as_object() else { return said(block) };
    let source = fields::object(object, "source").unwrap_or(object);
    let mime = ["mimeType", "media_type", "mediaType"].iter().find_map(|name| text(source, name));
    match (text(object, "text").or_else(|| text(object, "value")), text(source, "data")) {
        (Some(text), _) => text.to_owned(),
        (None, Some(data)) => attachment::media(mime, data),
        (None, None) => fields::plain(block),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn binary_is_named_not_shown() {
        let block =
            json!([{"type": "image", "mimeType": "image/png", "data": "AAAA"}, {"text": "b"}]);
        let said = said(&block);
        assert!(said.starts_with("[image/png, 3 bytes, blake3 "), "{said}");
        assert!(said.ends_with("\nb"));
    }
}
