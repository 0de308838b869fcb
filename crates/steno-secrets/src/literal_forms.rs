//! The forms in which a value is written: after a scheme or a type, wrapped in a call, in a list.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;

use crate::quoted_value::QuotedValue;
use crate::rule_pattern::RulePattern;

/// Longer lists are not read to their end.
const MAX_LIST_VALUES: usize = 20;

/// A type between a name and its value: `password: str = "..."`.
pub(crate) static TYPE_ANNOTATION: LazyLock<RulePattern> = LazyLock::new(|| {
    RulePattern::new(r#"\s{0,2}[&A-Za-z_][A-Za-z0-9_.<>\[\]|? '&]{0,40}?\s{0,2}=\s{0,2}["']"#)
});

/// The length of a scheme before a credential, as in `Bearer ...`, with the space after it.
pub(crate) fn scheme_length(value: &[u8]) -> usize {
    const SCHEMES: [&str; 7] = ["bearer", "basic", "token", "apikey", "ssws", "negotiate", "key"];
    let word = value.iter().take(10).take_while(|byte| byte.is_ascii_alphabetic()).count();
    let is_scheme =
        SCHEMES.iter().any(|scheme| value[..word].eq_ignore_ascii_case(scheme.as_bytes()));
    let spaces = value[word..].iter().take(2).take_while(|byte| **byte == b' ').count();
    if is_scheme && spaces > 0 { word + spaces } else { 0 }
}

/// The offset of a literal in a call that only wraps it: `Some("...")`, `String::from("...")`, `string(8) "..."`.
pub(crate) fn wrapped_literal_offset(rest: &[u8]) -> Option<usize> {
    const WRAPPERS: [&str; 20] = [
        "some",
        "just",
        "ok",
        "from",
        "of",
        "new",
        "string",
        "str",
        "bytes",
        "text",
        "literal",
        "value",
        "encode",
        "decode",
        "b64decode",
        "atob",
        "btoa",
        "quote",
        "securestring",
        "plaintext",
    ];
    let is_callee = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_.:&".contains(byte);
    let callee = rest.iter().take(48).take_while(is_callee).count();
    let name = rest[..callee].rsplit(|byte| b".:".contains(byte)).next()?.to_ascii_lowercase();
    let is_wrapper = WRAPPERS.iter().any(|wrapper| name == wrapper.as_bytes())
        || memmem::find(&name, b"secret").is_some()
        || memmem::find(&name, b"password").is_some();
    if !is_wrapper || rest.get(callee) != Some(&b'(') {
        return None;
    }
    let mut at = callee + 1;
    // `string(8) "..."` is how PHP prints a text.
    let digits = rest[at..].iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
    if digits > 0 && rest[at + digits..].starts_with(b") ") {
        at += digits + 2;
    }
    let prefix = usize::from(matches!(rest.get(at), Some(b'b' | b'r' | b'u' | b'&')));
    matches!(rest.get(at + prefix), Some(b'"' | b'\'')).then_some(at + prefix)
}

/// The literals of a list: `["one", "two"]`.
pub(crate) fn read_list(text: &[u8], at: usize) -> Vec<Range<usize>> {
    let mut values = Vec::new();
    if !matches!(text.get(at), Some(b'[')) {
        return values;
    }
    let mut at = at + 1;
    while values.len() < MAX_LIST_VALUES {
        let is_between = |byte: &&u8| byte.is_ascii_whitespace() || **byte == b',';
        at += text[at..].iter().take(80).take_while(is_between).count();
        let Some(value) = QuotedValue::read(text, at) else { break };
        at = value.end;
        values.push(value.range);
    }
    values
}

/// The length of an index between a name and its separator: `["prod"]` in `password["prod"] = ...`.
pub(crate) fn index_length(after: &[u8]) -> usize {
    if after.first() != Some(&b'[') {
        return 0;
    }
    let inner = after[1..].iter().take(40).take_while(|byte| !b"]\n[".contains(byte)).count();
    let is_index = inner > 0 && after.get(1 + inner) == Some(&b']');
    let rest = &after[after.len().min(inner + 2)..];
    let is_assigned = rest.starts_with(b" = ") || rest.starts_with(b"=") || rest.starts_with(b": ");
    if is_index && is_assigned { inner + 2 } else { 0 }
}
