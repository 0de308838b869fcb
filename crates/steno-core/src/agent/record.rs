//! JSON records of agents: how they are parsed, and what the readers of several agents do alike with them.
//!
//! Nothing here knows an agent. A record that cannot be parsed becomes a problem, and the next one is read.

pub(crate) mod blocks;
mod head;
mod telling;

pub(crate) use head::Head;
pub(crate) use telling::Telling;

use crate::agent::fields::{self, text};
use crate::agent::{attachment, repair};
use std::path::Path;

use serde_json::Value;

use crate::durable::{FileError, OnPath};
use crate::entry::EntryError;
use crate::format::tree;
use crate::json::Object;
use crate::lines::{LineEnd, Lines};
use crate::problem::Problem;
use crate::source::{Bundle, Source};

/// Gives each line's object to `take`, with the line's number; a bad line becomes a problem.
pub(crate) fn each_line(
    source: &Source,
    mut take: impl FnMut(Result<Object, Problem>, u64),
) -> Result<(), FileError> {
    let mut too_long = 0;
    for line in Lines::new(source.open()?) {
        let line = line.on("read", source.path())?;
        if line.number == too_long || line.bytes.trim_ascii().is_empty() {
            continue;
        }
        let object = if line.end == LineEnd::Limit {
            too_long = line.number;
            Err("line too long to be a record".to_owned())
        } else {
            parse(&line.bytes)
        };
        take(object.map_err(|why| Problem::at(source.path(), line.number, why)), line.number);
    }
    Ok(())
}

/// The object that is a whole file, or why it is none.
pub(crate) fn document(source: &Source) -> Result<Result<Object, Problem>, FileError> {
    Ok(parse(&source.bytes()?).map_err(|why| Problem::of(source.path(), why)))
}

/// The JSON files at or below `path` whose start `is_wanted`; a file that is itself `path` may have any name.
pub(crate) fn candidates(
    path: &Path,
    is_wanted: impl Fn(&Head) -> bool,
) -> Result<Vec<Bundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree::files(path)? {
        let extension = file.extension().and_then(|extension| extension.to_str());
        if file != path && !matches!(extension, Some("json" | "jsonl")) {
            continue;
        }
        let bundle = Bundle::file(&file);
        if is_wanted(&Head::of(&bundle.sources[0])?) {
            bundles.push(bundle);
        }
    }
    Ok(bundles)
}

/// Adds another file of the same session; a log of lines stands before the document that it continues.
pub(crate) fn put_log_first(bundle: &mut Bundle, mut file: Bundle) {
    if file.sources.iter().any(|source| source.name().ends_with(".jsonl")) {
        std::mem::swap(bundle, &mut file);
    }
    bundle.sources.extend(file.sources);
}

/// What a file is called without its extension: the name of a session that states none.
pub(crate) fn stem(source: &Source) -> &str {
    let name = source.name().rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Parses one object, or says why it is none.
fn parse(bytes: &[u8]) -> Result<Object, String> {
    match repair::parse(bytes)? {
        Value::Object(object) => Ok(object),
        _ => Err(EntryError::NotAnObject.to_string()),
    }
}

/// What a value says: a string as it is, the texts of a list of blocks, anything else as JSON.
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
    fn bad_lines_cost_only_themselves() {
        let bytes = b"{\"a\":1}\n\n[1]\n{\"b\":2}{\"c\":3}\n{\"d\":4}\n{\"e\"".to_vec();
        let source = Source::in_memory("x", "x", bytes);
        let mut seen = Vec::new();
        each_line(&source, |object, line| seen.push((line, object.is_ok()))).unwrap();
        assert_eq!(seen, [(1, true), (3, false), (4, false), (5, true), (6, false)]);
    }

    #[test]
    fn binary_is_named_not_shown() {
        let block =
            json!([{"type": "image", "mimeType": "image/png", "data": "AAAA"}, {"text": "b"}]);
        let said = said(&block);
        assert!(said.starts_with("[image/png, 3 bytes, blake3 "), "{said}");
        assert!(said.ends_with("\nb"));
    }
}
