//! Texts for people: counts, numbers, and text that cannot control a terminal.

use crate::byte_size::ByteSize;
use crate::json_output::is_unsafe;

/// Formats a count with its noun.
pub(crate) fn count_noun(number: u64, noun: &str) -> String {
    let stem = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    match (number, stem) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {noun}s"),
    }
}

/// Formats a number of bytes: exact below a kilobyte, else with three digits.
pub(crate) fn count_bytes(number: u64) -> String {
    if number < 1000 { count_noun(number, "byte") } else { ByteSize(number).to_string() }
}

/// Formats a number with commas between groups of three digits.
pub(crate) fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Escapes control and bidirectional characters, so that no transcript can control a terminal.
pub(crate) fn escape_control(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c if is_unsafe(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        let entries = [0, 1, 2].map(|number| count_noun(number, "entry"));
        assert_eq!(entries, ["0 entries", "1 entry", "2 entries"]);
        let bytes = [1, 999, 1000, 1_489_043].map(count_bytes);
        assert_eq!(bytes, ["1 byte", "999 bytes", "1.0 KB", "1.5 MB"]);
    }

    #[test]
    fn digits_are_grouped() {
        let grouped = [0, 999, 1000, 1_234_567].map(group_digits);
        assert_eq!(grouped, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn terminals_cannot_be_driven_by_transcripts() {
        assert_eq!(
            escape_control("a\x1b[2Jb\u{202e}c\n\td\u{9b}e"),
            "a\\u{1b}[2Jb\\u{202e}c\n\td\\u{9b}e"
        );
    }
}
