//! Prints JSON values as YAML, byte for byte like leslie's library: indent of 2, lines of 80.

mod fold;
mod text;

use serde_json::Value;

use self::text::ScalarContext;

/// Spaces per level of indent.
const INDENT_STEP: usize = 2;

/// Prints an object or a list.
pub(super) fn print_yaml(value: &Value) -> String {
    format_value(value, 0) + "\n"
}

/// Formats a value that starts on the current line; further lines get the indent.
fn format_value(value: &Value, indent: usize) -> String {
    let between = format!("\n{}", " ".repeat(indent));
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let fields = fields.iter().map(|(key, value)| format_field(key, value, indent));
            fields.collect::<Vec<_>>().join(&between)
        }
        Value::Array(items) if !items.is_empty() => {
            let items =
                items.iter().map(|item| format!("- {}", format_value(item, indent + INDENT_STEP)));
            items.collect::<Vec<_>>().join(&between)
        }
        Value::Object(_) => "{}".to_owned(),
        Value::String(text) => {
            text::format_scalar(text, ScalarContext { indent, before: None, is_key: false })
        }
        other => other.to_string(),
    }
}

fn format_field(key: &str, value: &Value, indent: usize) -> String {
    let indent = indent + INDENT_STEP;
    let key = text::format_scalar(key, ScalarContext { indent, before: None, is_key: true }) + ":";
    let (space, value) = match value {
        Value::Object(fields) if !fields.is_empty() => {
            (newline_with_indent(indent), format_value(value, indent))
        }
        Value::Array(items) if !items.is_empty() => {
            (newline_with_indent(indent), format_value(value, indent))
        }
        Value::String(text) => {
            let before = Some(key.encode_utf16().count() + 1);
            let text = text::format_scalar(text, ScalarContext { indent, before, is_key: false });
            (if text.starts_with('\n') { String::new() } else { " ".to_owned() }, text)
        }
        other => (" ".to_owned(), format_value(other, indent)),
    };
    key + &space + &value
}

fn newline_with_indent(indent: usize) -> String {
    format!("\n{}", " ".repeat(indent))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_printed_as_blocks() {
        let value = json!({
            "success": true,
            "data": [{ "id": "thread-1", "title": "a: b", "parent_id": null, "tags": [], "count": 1 }, "x", [1]],
            "text": "<a>\n\n  b\n</a>",
            "ends": "a\n",
            "empty": {},
            "word": "yes",
            "number": "42",
            "time": "2026-01-05T09:15:32.500Z",
        });
        let expected = r#"success: true
data:
  - id: thread-1
    title: "a: b"
    parent_id: null
    tags: []
    count: 1
  - x
  - - 1
text: |-
  <a>

    b
  </a>
ends: |
  a
empty: {}
word: yes
number: "42"
time: 2026-01-05T09:15:32.500Z
"#;
        assert_eq!(print_yaml(&value), expected);
    }

    #[test]
    fn long_texts_are_folded() {
        let words = "word ".repeat(20);
        let value = json!({
            "plain": words.trim_end(),
            "quoted": format!("{}: {words}", "x".repeat(90)),
            "single": format!("\"{}\"", words.trim_end()),
            "context": "<thread_context thread=\"thread-1\" objective=\"obj-1\" relations_file=\".leslie/thread_relations.json\">\n  <asset type=\"plan\" />\n</thread_context>",
        });
        let expected = r#"plain: word word word word word word word word word word word word word word
  word word word word word word
quoted: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
  xxxxxxxxxxxxxxxxxxxx: word word word word word word word word word word word
  word word word word word word word word word "
single: '"word word word word word word word word word word word word word word
  word word word word word word"'
context: >-
  <thread_context thread="thread-1" objective="obj-1"
  relations_file=".leslie/thread_relations.json">
    <asset type="plan" />
  </thread_context>
"#;
        assert_eq!(print_yaml(&value), expected);
    }
}
