//! Finds where a name starts and ends, and what is around it.

use std::ops::Range;

use memchr::memmem;

use crate::field_names::{is_before_key, may_own_key};
use crate::literal_forms::index_length;

/// Longer names are not names.
const MAX_NAME_BYTES: usize = 80;

/// For each byte, whether it is in the value of a sentence, or before it, and in few words.
const IS_VALUE_BYTE: [bool; 256] = {
    let mut table = [false; 256];
    let bytes = b"0123456789\"'`!@#$%^*~+";
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
};

/// Whether what follows a name may separate it from a value. Most names in prose and code have none.
pub(crate) fn may_have_value(after: &[u8], is_option: bool) -> bool {
    let spaces = after.iter().take(40).take_while(|byte| b" \t".contains(byte)).count();
    match after.get(spaces) {
        // Base64 may start with these.
        Some(b'/' | b'+') if is_option && spaces == 1 => true,
        Some(b'!' | b'+') => after[spaces + 1..].starts_with(b"="),
        // Braces around the value of a variable in C++.
        Some(b'{') => after[spaces + 1..].trim_ascii_start().starts_with(b"\""),
        Some(b'[') => index_length(&after[spaces..]) > 0,
        None | Some(b';' | b'}' | b'/' | b'#' | b'\0'..=b'\t') => false,
        Some(b')') if spaces == 0 => after.get(1).is_some_and(|byte| b" :=".contains(byte)),
        Some(b'\r' | b'\n') => after.iter().take(80).any(|byte| *byte == b':' || *byte == b'='),
        // In a sentence, a value has a digit, a quote or a verb before it.
        Some(_) if spaces > 0 && !is_option => {
            let word = &after[spaces..after.len().min(spaces + 100)];
            !word[0].is_ascii_alphabetic()
                || word.iter().any(|byte| IS_VALUE_BYTE[usize::from(*byte)])
        }
        Some(_) => true,
    }
}

/// The length of an operator that gives a name its value: `:=`, `=>`, `||=`, or that of a default.
///
/// A single `=` or `:` is none of them.
pub(crate) fn assignment_length(rest: &[u8], spaces: usize) -> Option<usize> {
    // The type of a variable in Go.
    if spaces == 1 && rest.starts_with(b"string = ") {
        return Some(8);
    }
    // The default of a variable of a shell.
    if rest.starts_with(b":-") {
        return (spaces == 0).then_some(2);
    }
    if let Some(appended) = literal_offset(rest, &[".=", "+="]) {
        return Some(appended);
    }
    if [":=", "::=", ":::=", "=>", "=="].iter().any(|it| rest.starts_with(it.as_bytes())) {
        return Some(rest.iter().take_while(|byte| b":=>".contains(byte)).count());
    }
    if let Some(operator) = ["||=", "??=", "?="].iter().find(|it| rest.starts_with(it.as_bytes())) {
        return Some(operator.len());
    }
    // The default of a variable: `getenv("DB_PASS") ?: "..."`.
    let defaults = ["|| ", "?? ", "?: ", "or "];
    let operator = defaults.iter().find(|it| rest.starts_with(it.as_bytes()))?;
    rest.get(operator.len()).is_some_and(|byte| b"\"'`".contains(byte)).then_some(operator.len())
}

/// The length of an operator that compares a name with a literal: `!= "..."`, `in ("..."`.
pub(crate) fn comparison_length(rest: &[u8]) -> Option<usize> {
    literal_offset(rest, &["!==", "!=", "in (", "in ["])
}

/// The offset of a literal that follows one of these operators.
fn literal_offset(rest: &[u8], operators: &[&str]) -> Option<usize> {
    let operator = operators.iter().find(|it| rest.starts_with(it.as_bytes()))?;
    let spaces = rest[operator.len()..].iter().take_while(|byte| **byte == b' ').count();
    let literal = operator.len() + spaces;
    rest.get(literal).is_some_and(|byte| b"\"'".contains(byte)).then_some(literal)
}

/// Whether a text ends with a word that makes a following `key` a secret, as in `API key`.
pub(crate) fn follows_key_word(before: &[u8]) -> bool {
    word_before(before).is_some_and(|word| is_before_key(&word))
}

/// Whether a text ends with a word that may be the name of a service, as in `the Acme key`.
pub(crate) fn follows_service_word(before: &[u8]) -> bool {
    word_before(before).is_some_and(|word| word.len() >= 3 && may_own_key(&word))
}

/// The word at the end of a text, and a space after it.
fn word_before(before: &[u8]) -> Option<String> {
    let before = before.strip_suffix(b" ")?;
    let is_inner = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'-';
    let length = before.iter().rev().take(24).take_while(is_inner).count();
    String::from_utf8(before[before.len() - length..].to_ascii_lowercase()).ok()
}

/// Whether the object around a quoted name is about secrets: `"Jwt": { "Key": "..." }`.
pub(crate) fn is_inside_secret_object(text: &[u8], start: usize) -> bool {
    let before = &text[start.saturating_sub(60)..start];
    let Some(object) = before.strip_suffix(b"\"").and_then(|it| memmem::rfind(it, b"{")) else {
        return false;
    };
    let name = before[..object].to_ascii_lowercase();
    let name = &name[name.len().saturating_sub(24)..];
    ["jwt", "auth", "secret", "sign", "crypt", "token"]
        .iter()
        .any(|word| memmem::find(name, word.as_bytes()).is_some())
}

pub(crate) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

pub(crate) fn name_bounds(text: &[u8], hint: &Range<usize>) -> Option<Range<usize>> {
    let before = text[..hint.start]
        .iter()
        .rev()
        .take(MAX_NAME_BYTES)
        .take_while(|byte| is_name_byte(**byte))
        .count();
    let after = text[hint.end..]
        .iter()
        .take(MAX_NAME_BYTES)
        .take_while(|byte| is_name_byte(**byte))
        .count();
    let mut start = hint.start - before;
    // The letter of an escape such as `\n` is not part of the name.
    if start > 0
        && text[start - 1] == b'\\'
        && matches!(text[start], b'n' | b't' | b'r')
        && start < hint.start
    {
        start += 1;
    }
    (before + after + hint.len() <= MAX_NAME_BYTES).then_some(start..hint.end + after)
}
