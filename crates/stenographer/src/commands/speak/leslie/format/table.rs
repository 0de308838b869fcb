//! Prints a response as `key : value` lines, and lists as columns.

use serde_json::{Map, Value};
use unicode_width::UnicodeWidthStr;

type Object = Map<String, Value>;

/// Minimum columns of a key.
const MIN_KEY_COLUMNS: usize = 8;

/// Prints the fields of the envelope, then its lists.
pub(super) fn print_table(envelope: &Value) -> String {
    let mut text = String::new();
    let (mut plain, mut lists) = (Object::new(), Vec::new());
    for (key, value) in envelope.as_object().into_iter().flatten() {
        match value {
            Value::Object(inner) => plain.extend(inner.clone()),
            Value::Array(items) => lists.push((key, items)),
            _ => {
                plain.insert(key.clone(), value.clone());
            }
        }
    }
    push_lines(&mut text, &plain);
    for (key, items) in lists.into_iter().filter(|(_, items)| !items.is_empty()) {
        text.push('\n');
        if key != "data" {
            text.push_str(&format!("{key}:\n"));
        }
        push_columns(&mut text, items);
    }
    text
}

fn push_lines(text: &mut String, object: &Object) {
    let width = object.keys().map(|key| key.width()).max().unwrap_or(0).max(MIN_KEY_COLUMNS);
    for (key, value) in object {
        let cell = format_cell(value).replace('\n', &format!("\n{}", " ".repeat(width + 3)));
        text.push_str(format!("{key:width$} : {cell}").trim_end());
        text.push('\n');
    }
}

fn push_columns(text: &mut String, items: &[Value]) {
    let mut heads: Vec<&str> = Vec::new();
    for key in items.iter().filter_map(Value::as_object).flat_map(Map::keys) {
        if !heads.contains(&key.as_str()) {
            heads.push(key);
        }
    }
    let row = |item: &Value| -> Vec<String> {
        let of =
            |head: &&str| item.get(head).map(format_cell).unwrap_or_default().replace('\n', " ");
        heads.iter().map(of).collect()
    };
    let mut rows = vec![heads.iter().map(|head| (*head).to_owned()).collect::<Vec<_>>()];
    rows.extend(items.iter().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    rows.insert(1, rule);
    for (at, row) in rows.iter().enumerate() {
        let gap = if at == 1 { "-|-" } else { " | " };
        let padded: Vec<_> =
            row.iter().zip(&widths).map(|(cell, width)| pad_cell(cell, *width)).collect();
        text.push_str(padded.join(gap).trim_end());
        text.push('\n');
    }
}

fn pad_cell(cell: &str, width: usize) -> String {
    format!("{cell}{}", " ".repeat(width.saturating_sub(cell.width())))
}

/// Formats a value as one cell; nested values become JSON.
fn format_cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) if !items.iter().any(|item| item.is_array() || item.is_object()) => {
            items.iter().map(format_cell).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_lines_and_lists_are_columns() {
        let one = json!({ "success": true, "data": { "id": "t", "tags": ["a", "b"], "parent_id": null } });
        assert_eq!(
            print_table(&one),
            "success   : true\nid        : t\ntags      : a, b\nparent_id :\n"
        );
        let many = json!({ "success": true, "data": [{ "id": "日本", "status": "active" }], "warnings": [] });
        let expected = "success  : true\n\nid   | status\n-----|-------\n日本 | active\n";
        assert_eq!(print_table(&many), expected);
    }

    #[test]
    fn texts_of_several_lines_stay_in_their_column() {
        let text =
            print_table(&json!({ "success": true, "data": { "thread_context": "<a>\n</a>" } }));
        assert_eq!(text, "success        : true\nthread_context : <a>\n                 </a>\n");
    }
}
