//! Finds values that are not directly beside their names: in lists of pairs, attributes and elements of markup.

use std::sync::LazyLock;

use crate::rule_pattern::RulePattern;

/// What is between a name and its value in lists of pairs: `"name": "TOKEN", "value": "..."`.
static PAIRED_VALUE: LazyLock<RulePattern> = LazyLock::new(|| {
    let between = r#"["'\\]{0,4}\s{0,4},?(?:\s{0,4}\n[-+])?\s{0,40}(?:\{\s{0,40}(?:type\s{0,12}=\s{0,3}\w{1,10}\s{0,40}|(?:sensitive|nullable)\s{0,12}=\s{0,3}\w{4,5}\s{0,40}|description\s{0,12}=\s{0,3}"[^"\n]{0,80}"\s{0,40}){0,3})?(?:--type\s\w{3,20}\s{1,3})?(?:--|["'\\]{0,4}(?:Parameter)?)(?i:value|default|stringvalue|defaultvalue|val|content)["'\\]{0,4}(?:\s{0,4}[:=]|\s)\s{0,4}"#;
    RulePattern::new(between)
});

/// What is between a name and its value in markup: attributes, or the end of an element and the start of the next.
static FOLLOWING_ELEMENT: LazyLock<RulePattern> = LazyLock::new(|| {
    let attributes = r#"(?:\s[A-Za-z:]{1,20}="[^"<>\n]{0,80}"){1,4}>"#;
    RulePattern::new(&format!(r"(?:</key>(?:\s|\\[nrt]){{0,20}}<string>|{attributes})"))
});

/// How many bytes after a name its value in a list of pairs starts: `"name": "TOKEN", "value": "..."`.
pub(crate) fn paired_value_offset(after: &[u8]) -> Option<usize> {
    if !may_start_pair(after) {
        return None;
    }
    Some(PAIRED_VALUE.match_start(after)?.whole.end)
}

/// How many bytes after a name in markup its value starts: `<key>Token</key><string>...`.
pub(crate) fn following_element_offset(after: &[u8]) -> Option<usize> {
    if !may_follow_element(after) {
        return None;
    }
    Some(FOLLOWING_ELEMENT.match_start(after)?.whole.end)
}

/// Whether [`PAIRED_VALUE`] may match: what is between a name and the next word, brace or option has no other bytes.
fn may_start_pair(after: &[u8]) -> bool {
    let is_between = |byte: &u8| b"\"'\\,\x0b".contains(byte) || byte.is_ascii_whitespace();
    let between = after.iter().take(60).take_while(|byte| is_between(byte)).count();
    after.get(between).is_some_and(|byte| b"{-+pvdsc".contains(&byte.to_ascii_lowercase()))
}

/// Whether [`FOLLOWING_ELEMENT`] may match: the end of an element is there, or the start of an attribute.
fn may_follow_element(after: &[u8]) -> bool {
    match after {
        [b'<', rest @ ..] => rest.starts_with(b"/key>"),
        [b' ', rest @ ..] => {
            let is_name = |byte: &&u8| byte.is_ascii_alphabetic() || **byte == b':';
            let name = rest.iter().take(20).take_while(is_name).count();
            name > 0 && rest[name..].starts_with(b"=\"")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_pair_is_found() {
        for (after, value) in [
            ("\", \"value\": \"x\"", "\"x\""),
            ("\n  value: x", "x"),
            ("\n+  value: x", "x"),
            ("\" {\n  type = string\n  default = \"x\"", "\"x\""),
            (" --value x", "x"),
            ("\",\n  \"ParameterValue\": \"x\"", "\"x\""),
        ] {
            let offset = paired_value_offset(after.as_bytes());
            assert_eq!(offset.map(|offset| &after[offset..]), Some(value), "{after}");
        }
        for after in ["=value", ": \"value\"", " of a value: x", ""] {
            assert_eq!(paired_value_offset(after.as_bytes()), None, "{after}");
        }
    }

    #[test]
    fn the_value_of_the_next_element_is_found() {
        for (after, value) in [
            ("</key>\n  <string>x", "x"),
            ("</key>\\n<string>x", "x"),
            (" type=\"a\" id=\"b\">x</c>", "x</c>"),
        ] {
            let offset = following_element_offset(after.as_bytes());
            assert_eq!(offset.map(|offset| &after[offset..]), Some(value), "{after}");
        }
        for after in ["</name>x", " is x", " a=b", ""] {
            assert_eq!(following_element_offset(after.as_bytes()), None, "{after}");
        }
    }
}
