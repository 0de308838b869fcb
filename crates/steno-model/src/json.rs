//! JSON output that matches the standard libraries of other languages byte for byte.
//!
//! `serde_json` does the work; [`JsonStyle`] sets separators, indent and escapes.

pub mod scanner;
pub mod string_end;
pub mod value_limit;

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
pub use serde_json::{Map, Value};

/// An ordered JSON object.
pub type Object = Map<String, Value>;

/// The JSON output style of a language's standard library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonStyle {
    indent: Option<usize>,
    item_separator: &'static str,
    key_separator: &'static str,
    escape: EscapeRule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EscapeRule {
    /// Only the escapes that JSON requires.
    Minimal,
    /// Also `<`, `>`, `&`, U+2028 and U+2029, like Go.
    Html,
    /// Everything outside printable ASCII, like Python.
    Ascii,
}

impl JsonStyle {
    /// No spaces, unescaped UTF-8: serde_json, `JSON.stringify`.
    pub const COMPACT: JsonStyle = JsonStyle {
        indent: None,
        item_separator: ",",
        key_separator: ":",
        escape: EscapeRule::Minimal,
    };
    /// Two spaces of indent, unescaped UTF-8.
    pub const PRETTY: JsonStyle = JsonStyle {
        indent: Some(2),
        item_separator: ",",
        key_separator: ": ",
        escape: EscapeRule::Minimal,
    };
    /// Go's `json.MarshalIndent(v, "", "  ")`.
    pub const GO_INDENT: JsonStyle = JsonStyle {
        indent: Some(2),
        item_separator: ",",
        key_separator: ": ",
        escape: EscapeRule::Html,
    };
    /// Python's `json.dumps(v, separators=(",", ":"))`.
    pub const PYTHON_COMPACT: JsonStyle = JsonStyle {
        indent: None,
        item_separator: ",",
        key_separator: ":",
        escape: EscapeRule::Ascii,
    };
    /// Python's `json.dumps(v)`.
    pub const PYTHON: JsonStyle = JsonStyle {
        indent: None,
        item_separator: ", ",
        key_separator: ": ",
        escape: EscapeRule::Ascii,
    };
    /// Python's `json.dumps(v, indent=2)`.
    pub const PYTHON_INDENT: JsonStyle = JsonStyle {
        indent: Some(2),
        item_separator: ",",
        key_separator: ": ",
        escape: EscapeRule::Ascii,
    };

    /// Prints `value` in this style, without a trailing newline.
    pub fn print<T: Serialize + ?Sized>(self, value: &T) -> String {
        let mut out = Vec::new();
        let mut serializer = Serializer::with_formatter(
            &mut out,
            JsonFormatter { style: self, depth: 0, is_empty: true },
        );
        value
            .serialize(&mut serializer)
            .expect("our types have string keys and a Vec takes all bytes");
        String::from_utf8(out).expect("serde_json writes UTF-8")
    }
}

/// Sorts the keys of all objects, recursively.
pub fn sort_keys(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut fields: Vec<_> = object.iter().collect();
            fields.sort_by_key(|(key, _)| key.as_str());
            let fields = fields.into_iter().map(|(key, value)| (key.clone(), sort_keys(value)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.iter().map(sort_keys).collect(),
        other => other.clone(),
    }
}

/// Formats a number as Go's `encoding/json` prints a `float64`.
pub fn format_go_float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = format!("{value:e}");
        return if text.contains("e-") { text } else { text.replace('e', "e+") };
    }
    format!("{value}")
}

struct JsonFormatter {
    style: JsonStyle,
    depth: usize,
    is_empty: bool,
}

impl JsonFormatter {
    fn write_line_break<W: io::Write + ?Sized>(&self, out: &mut W) -> io::Result<()> {
        let Some(indent) = self.style.indent else {
            return Ok(());
        };
        out.write_all(b"\n")?;
        for _ in 0..self.depth * indent {
            out.write_all(b" ")?;
        }
        Ok(())
    }

    fn open_bracket<W: io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        bracket: &[u8],
    ) -> io::Result<()> {
        self.depth += 1;
        self.is_empty = true;
        out.write_all(bracket)
    }

    fn close_bracket<W: io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        bracket: &[u8],
    ) -> io::Result<()> {
        self.depth -= 1;
        if !self.is_empty {
            self.write_line_break(out)?;
        }
        self.is_empty = false;
        out.write_all(bracket)
    }

    fn begin_item<W: io::Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.is_empty = false;
        if !first {
            out.write_all(self.style.item_separator.as_bytes())?;
        }
        self.write_line_break(out)
    }

    fn needs_escape(&self, c: char) -> bool {
        match self.style.escape {
            EscapeRule::Minimal => false,
            EscapeRule::Html => matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'),
            EscapeRule::Ascii => !c.is_ascii() || c == '\u{7f}',
        }
    }
}

impl Formatter for JsonFormatter {
    fn begin_array<W: io::Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.open_bracket(out, b"[")
    }

    fn end_array<W: io::Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.close_bracket(out, b"]")
    }

    fn begin_array_value<W: io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.begin_item(out, first)
    }

    fn begin_object<W: io::Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.open_bracket(out, b"{")
    }

    fn end_object<W: io::Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.close_bracket(out, b"}")
    }

    fn begin_object_key<W: io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.begin_item(out, first)
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(self.style.key_separator.as_bytes())
    }

    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| self.needs_escape(*c)) {
            out.write_all(&rest.as_bytes()[..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &rest[at + c.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn go_escapes_html_and_line_separators() {
        let value = json!({"b": "<a> & \u{2028} é \u{8}\u{1f}\u{7f}/", "a": [], "c": {}});
        assert_eq!(
            JsonStyle::GO_INDENT.print(&value),
            "{\n  \"b\": \"\\u003ca\\u003e \\u0026 \\u2028 é \\b\\u001f\u{7f}/\",\n  \"a\": [],\n  \"c\": {}\n}"
        );
    }

    #[test]
    fn python_escapes_all_but_printable_ascii() {
        let value = json!({"k": ["é🔧\u{7f}", 1, 2.5, null]});
        assert_eq!(
            JsonStyle::PYTHON_COMPACT.print(&value),
            r#"{"k":["\u00e9\ud83d\udd27\u007f",1,2.5,null]}"#
        );
        assert_eq!(
            JsonStyle::PYTHON.print(&json!({"a": 1, "b": [1, 2]})),
            r#"{"a": 1, "b": [1, 2]}"#
        );
        assert_eq!(
            JsonStyle::PYTHON_INDENT.print(&json!({"a": [1]})),
            "{\n  \"a\": [\n    1\n  ]\n}"
        );
    }

    #[test]
    fn go_floats() {
        for (value, text) in [
            (0.0, "0"),
            (0.12, "0.12"),
            (1.5, "1.5"),
            (1e-7, "1e-7"),
            (1e21, "1e+21"),
            (100.0, "100"),
            (1e20, "100000000000000000000"),
        ] {
            assert_eq!(format_go_float(value), text);
        }
    }

    #[test]
    fn numbers_keep_their_text() {
        let text = r#"{"big":123456789012345678901234567890,"one":1.0,"exp":1e400}"#;
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(JsonStyle::COMPACT.print(&value).replace("e+", "e"), text);
    }
}
