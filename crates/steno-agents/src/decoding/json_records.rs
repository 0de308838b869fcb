//! Shared code for readers of JSON record files: finding candidates, naming sessions, and rendering values as text.
//!
//! Only files with a JSON extension are candidates, because a file may have noise before its first record.

pub(crate) mod blocks;

use crate::decoding::file_head::FileHead;
use crate::decoding::json_fields::{self, text_field};
use crate::decoding::{attachment, json_lines};
use crate::reader::file_tree::FileTree;
use steno_model::durable::FileError;
use steno_model::json::{Object, Value};
use steno_model::problem::Problem;
use steno_vault::{SessionBundle, SessionFile};

/// Parses a whole file as one object. The inner error says why it is not one.
pub(crate) fn read_object(source: &SessionFile) -> Result<Result<Object, Problem>, FileError> {
    Ok(json_lines::parse_object(&source.read_bytes()?)
        .map_err(|why| Problem::for_file(source.path(), why)))
}

/// Bundles each JSON file with a head that `is_wanted` accepts. The root itself may be a file of any name.
pub(crate) fn find_candidates(
    tree: &FileTree,
    is_wanted: impl Fn(&FileHead) -> bool,
) -> Result<Vec<SessionBundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree.files() {
        let extension = file.extension().and_then(|extension| extension.to_str());
        if file != tree.root() && !matches!(extension, Some("json" | "jsonl")) {
            continue;
        }
        let bundle = SessionBundle::from_file(file);
        if is_wanted(&FileHead::read(&bundle.files[0])?) {
            bundles.push(bundle);
        }
    }
    Ok(bundles)
}

/// Adds another file of the same session. A JSON Lines log is put before the document that it continues.
pub(crate) fn put_log_first(bundle: &mut SessionBundle, mut file: SessionBundle) {
    let is_log = |bundle: &SessionBundle| {
        bundle.files.iter().any(|source| source.name().ends_with(".jsonl"))
    };
    if is_log(&file) && !is_log(bundle) {
        std::mem::swap(bundle, &mut file);
    }
    bundle.files.extend(file.files);
}

/// The file name without its extension: the id of a session that states none.
pub(crate) fn session_stem(source: &SessionFile) -> &str {
    let name = source.name().rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// A value as text: a string as it is, a list as the texts of its blocks, anything else as JSON.
pub(crate) fn value_text(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(block_text).collect::<Vec<_>>().join("\n"),
        other => json_fields::plain_text(other),
    }
}

fn block_text(block: &Value) -> String {
    let Some(object) = block.as_object() else { return value_text(block) };
    let source = json_fields::object_field(object, "source").unwrap_or(object);
    let mime =
        ["mimeType", "media_type", "mediaType"].iter().find_map(|name| text_field(source, name));
    match (
        text_field(object, "text").or_else(|| text_field(object, "value")),
        text_field(source, "data"),
    ) {
        (Some(text), _) => text.to_owned(),
        (None, Some(data)) => attachment::describe_base64(mime, data),
        (None, None) => json_fields::plain_text(block),
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
        let text = value_text(&block);
        assert!(text.starts_with("[image/png, 3 bytes, blake3 "), "{text}");
        assert!(text.ends_with("\nb"));
    }
}
