//! JSON values as YAML, byte for byte as leslie's library prints them: blocks of two spaces, lines of 80.

mod fold;
mod text;

use serde_json::Value;

use self::text::TextPlace;

/// Spaces by which each level stands further to the right.
const STEP: usize = 2;

/// Prints a value that is an object or a list.
pub(super) fn print(value: &Value) -> String {
    block(value, 0) + "\n"
}

/// A value that begins where the line stands; its further lines are indented so far.
fn block(value: &Value, indent: usize) -> String {
    let between = format!("\n{}", " ".repeat(indent));
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let fields = fields.iter().map(|(key, value)| field(key, value, indent));
            fields.collect::<Vec<_>>().join(&between)
        }
        Value::Array(items) if !items.is_empty() => {
            let items = items.iter().map(|item| format!("- {}", block(item, indent + STEP)));
            items.collect::<Vec<_>>().join(&between)
        }
        Value::Object(_) => "{}".to_owned(),
        Value::String(text) => {
            text::scalar(text, TextPlace { indent, before: None, is_key: false })
        }
        other => other.to_string(),
    }
}

fn field(key: &str, value: &Value, indent: usize) -> String {
    let indent = indent + STEP;
    let key = text::scalar(key, TextPlace { indent, before: None, is_key: true }) + ":";
    let (space, value) = match value {
        Value::Object(fields) if !fields.is_empty() => (newline(indent), block(value, indent)),
        Value::Array(items) if !items.is_empty() => (newline(indent), block(value, indent)),
        Value::String(text) => {
            let before = Some(key.encode_utf16().count() + 1);
            let text = text::scalar(text, TextPlace { indent, before, is_key: false });
            (if text.starts_with('\n') { String::new() } else { " ".to_owned() }, text)
        }
        other => (" ".to_owned(), block(other, indent)),
    };
    key + &space + &value
}

fn newline(indent: usize) -> String {
    format!("\n{}", " ".repeat(indent))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_stand_in_blocks() {
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
        assert_eq!(print(&value), expected);
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
        assert_eq!(print(&value), expected);
    }
}
