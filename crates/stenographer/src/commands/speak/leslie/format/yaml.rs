//! JSON values as YAML: blocks, plain texts where they are unmistakable, and quotes elsewhere.

use serde_json::Value;

/// Prints a value that is an object or a list.
pub(super) fn print(value: &Value) -> String {
    let mut text = String::new();
    push_block(&mut text, value, 0);
    text
}

fn push_block(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) => {
            for (at, (key, value)) in fields.iter().enumerate() {
                // The first field of a list's item stands beside its dash.
                let lead = if at == 0 && text.ends_with("- ") { "" } else { &indent };
                text.push_str(&format!("{lead}{}:", scalar(key)));
                push_value(text, value, depth);
            }
        }
        Value::Array(items) => {
            for item in items {
                text.push_str(&format!("{indent}-"));
                match item {
                    Value::Object(fields) if !fields.is_empty() => {
                        text.push(' ');
                        push_block(text, item, depth + 1);
                    }
                    other => push_value(text, other, depth),
                }
            }
        }
        _ => {}
    }
}

fn push_value(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(fields) if fields.is_empty() => text.push_str(" {}\n"),
        Value::Array(items) if items.is_empty() => text.push_str(" []\n"),
        Value::Object(_) | Value::Array(_) => {
            text.push('\n');
            push_block(text, value, depth + 1);
        }
        Value::String(lines) if is_literal(lines) => push_literal(text, lines, depth + 1),
        Value::String(line) => text.push_str(&format!(" {}\n", scalar(line))),
        other => text.push_str(&format!(" {other}\n")),
    }
}

/// Whether a text of several lines can stand as it is.
fn is_literal(text: &str) -> bool {
    let is_plain = |c: char| c == '\n' || !c.is_control();
    text.contains('\n') && !text.starts_with([' ', '\n']) && text.chars().all(is_plain)
}

fn push_literal(text: &mut String, lines: &str, depth: usize) {
    let chomp = match lines.chars().rev().take_while(|c| *c == '\n').count() {
        0 => "-",
        1 => "",
        _ => "+",
    };
    text.push_str(&format!(" |{chomp}\n"));
    for line in lines.strip_suffix('\n').unwrap_or(lines).split('\n') {
        let indent = if line.is_empty() { String::new() } else { "  ".repeat(depth) };
        text.push_str(&format!("{indent}{line}\n"));
    }
}

/// A text on one line: plain where nobody can take it for anything else, else quoted as in JSON.
fn scalar(text: &str) -> String {
    let is_word = text.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '/');
    let is_safe = |c: char| c.is_alphanumeric() || " _-./()+,$%=~;<>".contains(c);
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_reserved = reserved.contains(&text.to_ascii_lowercase().as_str());
    if is_word && !is_reserved && !text.ends_with(' ') && text.chars().all(is_safe) {
        return text.to_owned();
    }
    Value::from(text).to_string()
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
  -
    - 1
text: |-
  <a>

    b
  </a>
ends: |
  a
empty: {}
word: "yes"
time: "2026-01-05T09:15:32.500Z"
"#;
        assert_eq!(print(&value), expected);
    }
}
