//! Parses JSON leniently: repairs a few known errors of agents.
//!
//! JavaScript may cut a string inside a surrogate pair and write a lone `\ud83d`. Python writes `NaN` and `Infinity`.
//! Some files start with a byte order mark or contain invalid UTF-8. These are replaced. Any other error stays an
//! error.
//!
//! `serde_json` accepts none of these, and a repair runs only after it has failed: good lines take as long as with it alone
//! (0.99 to 1.01, `json_passes` in the benches of `steno-store`).

use serde::de::DeserializeOwned;

use steno_model::json::value_limit;
use steno_model::problem::json_error_reason;

/// Parses JSON of any type, repaired if necessary. The error says why it cannot be parsed.
pub fn parse_lenient<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    value_limit::check_value_count(bytes)?;
    serde_json::from_slice(bytes)
        .or_else(|error| match repair_text(bytes) {
            Some(text) => serde_json::from_str(&text),
            None => Err(error),
        })
        .map_err(|error| json_error_reason(&error))
}

/// Replaces lone surrogates in a record, because a parser that skips strings does not notice them.
pub fn replace_lone_surrogates(bytes: Vec<u8>) -> Vec<u8> {
    let has_escape = |start: &[u8]| memchr::memmem::find(&bytes, start).is_some();
    if !has_escape(b"\\ud") && !has_escape(b"\\uD") {
        return bytes;
    }
    repair_text(&bytes).map_or(bytes, String::into_bytes)
}

/// The text with all repairs. `None` if there is nothing to repair.
pub(crate) fn repair_text(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.trim_start_matches('\u{feff}');
    let mut in_string = false;
    while let Some(c) = rest.chars().next() {
        let (taken, written) = match c {
            '\\' if in_string => repair_escape(rest),
            'N' | 'I' | '-' if !in_string => repair_number(rest),
            _ => (&rest[..c.len_utf8()], &rest[..c.len_utf8()]),
        };
        in_string ^= c == '"';
        out.push_str(written);
        rest = &rest[taken.len()..];
    }
    (out.as_bytes() != bytes).then_some(out)
}

/// The escape sequence at the start of `text`, and its replacement.
fn repair_escape(text: &str) -> (&str, &str) {
    match surrogate_half(text) {
        None => {
            let end = text.char_indices().nth(2).map_or(text.len(), |(at, _)| at);
            (&text[..end], &text[..end])
        }
        Some(SurrogateHalf::High) if surrogate_half(&text[6..]) == Some(SurrogateHalf::Low) => {
            (&text[..12], &text[..12])
        }
        Some(_) => (&text[..6], "\\ufffd"),
    }
}

#[derive(PartialEq, Eq)]
enum SurrogateHalf {
    High,
    Low,
}

/// Which surrogate the escape sequence at the start of `text` is.
fn surrogate_half(text: &str) -> Option<SurrogateHalf> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(SurrogateHalf::High),
        0xdc00..=0xdfff => Some(SurrogateHalf::Low),
        _ => None,
    }
}

/// Replaces a number that JSON does not allow by null.
fn repair_number(text: &str) -> (&str, &str) {
    let literals = ["NaN", "Infinity", "-Infinity"];
    match literals.iter().find(|literal| text.starts_with(**literal)) {
        Some(literal) => (&text[..literal.len()], "null"),
        None => (&text[..1], &text[..1]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use steno_model::json::Value;

    #[test]
    fn halves_of_pairs_are_replaced() {
        let given = br#"["x\ud83d y\\ud83d \ud83d\ude00 \udc00 \"NaN\n"]"#;
        let parsed: [String; 1] = parse_lenient(given).unwrap();
        assert_eq!(parsed, ["x\u{fffd} y\\ud83d 😀 \u{fffd} \"NaN\n"]);
    }

    #[test]
    fn only_halves_change_a_record() {
        let whole = br#"{"a":"\ud83d\ude00 \u00e9"}"#;
        assert_eq!(replace_lone_surrogates(whole.to_vec()), whole);
        assert_eq!(replace_lone_surrogates(br#"["\uD83d"]"#.to_vec()), br#"["\ufffd"]"#);
    }

    #[test]
    fn numbers_that_are_none_are_null() {
        let parsed: Value = parse_lenient(b"[NaN,-Infinity,-1,\"NaN\"]").unwrap();
        assert_eq!(parsed.to_string(), "[null,null,-1,\"NaN\"]");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(parse_lenient::<[String; 1]>(b"\xef\xbb\xbf[\"\xff\"]").unwrap(), ["\u{fffd}"]);
    }

    #[test]
    fn reports_other_syntax_errors() {
        assert!(parse_lenient::<Value>(b"[").unwrap_err().starts_with("not JSON"));
    }

    proptest! {
        #[test]
        fn any_bytes_parse_or_are_refused(bytes: Vec<u8>, text in "[\\\\ud8c0\"{}:NI-]{0,40}") {
            let _ = parse_lenient::<Value>(&bytes);
            let _ = parse_lenient::<Value>(text.as_bytes());
        }

        #[test]
        fn good_json_stays(text in "[\\\\ud8c0-9\" ]{0,40}") {
            let good = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(repair_text(good.as_bytes()), None);
        }
    }
}
