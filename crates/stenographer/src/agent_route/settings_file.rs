//! Settings files of agents. One that cannot be read states nothing: the agent itself will complain.

use std::path::Path;

use serde_json::Value;

/// A JSON file that may have comments.
pub(super) fn read_json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    parse_json(&text)
}

/// JSON that may have comments; null if it is none.
pub(super) fn parse_json(text: &str) -> Value {
    jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default())
        .unwrap_or_default()
}

/// The text at a path of fields.
pub(super) fn text_at<'a>(value: &'a Value, fields: &[&str]) -> Option<&'a str> {
    let found = fields.iter().try_fold(value, |value, field| value.get(field));
    found.and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}
