//! The readable part of a tool result that agents record as JSON.

use std::borrow::Cow;

use serde_json::Value;

/// The text of a tool result, and what its envelope says about the command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResultText<'a> {
    /// What the tool wrote.
    pub(crate) output: Cow<'a, str>,
    /// The exit code, if the result names one.
    pub(crate) exit_code: Option<i64>,
}

impl<'a> ResultText<'a> {
    /// Parses a result. Codex records `{"output": TEXT, "metadata": {"exit_code": 1, ...}}`; all else is its own text.
    pub(crate) fn parse(content: &'a str) -> Self {
        parse_envelope(content).unwrap_or(Self { output: Cow::Borrowed(content), exit_code: None })
    }
}

fn parse_envelope<'a>(content: &str) -> Option<ResultText<'a>> {
    let trimmed = content.trim();
    if !trimmed.starts_with('{') || !trimmed.ends_with('}') {
        return None;
    }
    let Ok(Value::Object(mut fields)) = serde_json::from_str(trimmed) else { return None };
    let is_known = |name: &String| name == "output" || name == "metadata";
    let Some(Value::String(output)) =
        fields.remove("output").filter(|_| fields.keys().all(is_known))
    else {
        return None;
    };
    let exit_code = fields.get("metadata").and_then(|facts| facts.get("exit_code")?.as_i64());
    Some(ResultText { output: Cow::Owned(output), exit_code })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_its_output() {
        let text = r#"{"output":"one\ntwo\n","metadata":{"exit_code":1,"duration_seconds":0.1}}"#;
        let parsed = ResultText::parse(text);
        assert_eq!((parsed.output.as_ref(), parsed.exit_code), ("one\ntwo\n", Some(1)));
        assert_eq!(ResultText::parse(r#"{"output": "x"}"#).output, "x");
    }

    #[test]
    fn other_json_is_kept_as_it_is() {
        for text in [
            r#"{"output": 5}"#,
            r#"{"output": "x", "rows": []}"#,
            r#"{"metadata": {}}"#,
            "{\"output\": \"cut",
            "plain",
        ] {
            assert_eq!(ResultText::parse(text).output, text);
        }
    }
}
