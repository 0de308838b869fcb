//! The arguments of a tool call. Agents often call tools by other argument names and types than declared, so those
//! with a clear meaning are accepted.

use serde_json::{Map, Value};

use crate::tool_error::ToolError;

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentType {
    Text,
    Number,
}

/// An argument of a tool.
#[derive(Debug)]
pub(crate) struct ToolArgument {
    pub(crate) name: &'static str,
    pub(crate) kind: ArgumentType,
    /// Empty if the name says enough.
    pub(crate) description: &'static str,
    /// Whether the tool needs it.
    pub(crate) is_required: bool,
    /// Other names under which it is accepted.
    pub(crate) aliases: &'static [&'static str],
}

impl ToolArgument {
    /// An optional text.
    pub(crate) const fn text(name: &'static str, description: &'static str) -> Self {
        Self { name, kind: ArgumentType::Text, description, is_required: false, aliases: &[] }
    }

    /// An optional number.
    pub(crate) const fn number(name: &'static str, description: &'static str) -> Self {
        Self { kind: ArgumentType::Number, ..Self::text(name, description) }
    }

    /// The same, under other names too.
    pub(crate) const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// The same, as an argument that the tool needs.
    pub(crate) const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }
}

/// The arguments of a call, under their own names.
#[derive(Debug)]
pub(crate) struct ToolArguments {
    values: Map<String, Value>,
    /// Names that the tool does not know.
    pub(crate) ignored: Vec<String>,
}

impl ToolArguments {
    /// Sorts given arguments by the names that the tool knows.
    pub(crate) fn new(known: &[ToolArgument], given: Map<String, Value>) -> Self {
        let (mut values, mut ignored) = (Map::new(), Vec::new());
        for (name, value) in given.into_iter().filter(|(_, value)| !value.is_null()) {
            let plain = snake_case(&name);
            let is_meant = |argument: &&ToolArgument| {
                argument.name == plain || argument.aliases.contains(&plain.as_str())
            };
            match known.iter().find(is_meant) {
                // The declared name wins over others.
                Some(argument) if argument.name == plain || !values.contains_key(argument.name) => {
                    values.insert(argument.name.to_owned(), value);
                }
                _ => ignored.push(name),
            }
        }
        Self { values, ignored }
    }

    /// A text; `None` if it is absent or empty.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, ToolError> {
        let text = match self.values.get(name) {
            None => return Ok(None),
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Array(words)) if words.iter().all(Value::is_string) => {
                words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
            }
            Some(other) => {
                return Err(ToolError::arguments(format!("{name} should be a text, not {other}")));
            }
        };
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// A whole number, also as a text.
    pub(crate) fn number(&self, name: &str) -> Result<Option<usize>, ToolError> {
        let wrong = |value: &Value| {
            ToolError::arguments(format!("{name} should be a whole number, not {value}"))
        };
        let Some(value) = self.values.get(name) else { return Ok(None) };
        let text = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned());
        let text = text.strip_suffix(".0").unwrap_or(&text);
        text.parse().map(Some).map_err(|_| wrong(value))
    }
}

/// `maxBytes` and `max-bytes` as `max_bytes`.
fn snake_case(name: &str) -> String {
    let mut plain = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !plain.is_empty() && !plain.ends_with('_') {
            plain.push('_');
        }
        plain.extend(if c == '-' { '_' } else { c }.to_lowercase());
    }
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KNOWN: [ToolArgument; 2] = [
        ToolArgument::text("query", "words").also(&["pattern"]).required(),
        ToolArgument::number("max_bytes", "size"),
    ];

    fn arguments(given: Value) -> ToolArguments {
        let Value::Object(given) = given else { panic!("not an object") };
        ToolArguments::new(&KNOWN, given)
    }

    #[test]
    fn other_names_and_types_are_accepted() {
        let given = arguments(json!({"pattern": "  retry ", "maxBytes": "900", "x": null}));
        assert_eq!(given.text("query").unwrap().as_deref(), Some("retry"));
        assert_eq!(given.number("max_bytes").unwrap(), Some(900));
        assert!(given.ignored.is_empty());
        let given = arguments(json!({"query": ["a", "b"], "pattern": "c", "max-bytes": 900.0}));
        assert_eq!(given.text("query").unwrap().as_deref(), Some("a b"));
        assert_eq!(given.number("max_bytes").unwrap(), Some(900));
        assert_eq!(given.ignored, ["pattern"]);
    }

    #[test]
    fn wrong_types_are_explained() {
        let given = arguments(json!({"query": {"a": 1}, "max_bytes": "much"}));
        let text = given.text("query").unwrap_err().to_string();
        assert_eq!(text, r#"query should be a text, not {"a":1}"#);
        let number = given.number("max_bytes").unwrap_err().to_string();
        assert_eq!(number, r#"max_bytes should be a whole number, not "much""#);
    }
}
