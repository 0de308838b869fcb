//! Reads the settings files of agents. A file that cannot be parsed counts as empty; the agent itself reports the
//! error.

use std::path::Path;

use serde_json::Value;

/// Reads a JSON file with comments. Returns null if it cannot be read.
pub(super) fn read_json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    parse_json(&text)
}

/// Parses JSON with comments. Returns null on a syntax error.
pub(super) fn parse_json(text: &str) -> Value {
    jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default())
        .unwrap_or_default()
}

/// Returns the text at a path of field names, if it is not blank.
pub(super) fn text_at<'a>(value: &'a Value, fields: &[&str]) -> Option<&'a str> {
    let found = fields.iter().try_fold(value, |value, field| value.get(field));
    found.and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}
