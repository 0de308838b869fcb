//! Makes JSON of what some writers take for it: halves of surrogate pairs, `NaN` and `Infinity`,
//! bytes that are no text, a byte order mark.

/// The document with such places replaced; what else is wrong with it stays.
pub(crate) fn repair(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.trim_start_matches('\u{feff}');
    let mut in_string = false;
    while let Some(c) = rest.chars().next() {
        let (taken, written) = match c {
            '\\' if in_string => escape(rest),
            'N' | 'I' | '-' if !in_string => number(rest),
            _ => (&rest[..c.len_utf8()], &rest[..c.len_utf8()]),
        };
        in_string ^= c == '"';
        out.push_str(written);
        rest = &rest[taken.len()..];
    }
    out.into_bytes()
}

/// The escape at the beginning of `text`, and what stands for it.
fn escape(text: &str) -> (&str, &str) {
    match surrogate(text) {
        None => {
            let end = text.char_indices().nth(2).map_or(text.len(), |(at, _)| at);
            (&text[..end], &text[..end])
        }
        Some(Half::High) if surrogate(&text[6..]) == Some(Half::Low) => (&text[..12], &text[..12]),
        Some(_) => (&text[..6], "\\ufffd"),
    }
}

#[derive(PartialEq, Eq)]
enum Half {
    High,
    Low,
}

/// Which half of a pair the escape is that `text` begins with.
fn surrogate(text: &str) -> Option<Half> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Half::High),
        0xdc00..=0xdfff => Some(Half::Low),
        _ => None,
    }
}

/// A number that JSON does not know becomes null.
fn number(text: &str) -> (&str, &str) {
    let words = ["NaN", "Infinity", "-Infinity"];
    match words.iter().find(|word| text.starts_with(**word)) {
        Some(word) => (&text[..word.len()], "null"),
        None => (&text[..1], &text[..1]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn repaired(text: &str) -> String {
        String::from_utf8(repair(text.as_bytes())).unwrap()
    }

    #[test]
    fn halves_of_pairs_are_replaced() {
        assert_eq!(repaired(r#""\ud83d\ude00 \ud83d \ude00""#), r#""\ud83d\ude00 \ufffd \ufffd""#);
        assert_eq!(repaired(r#""\\ud83d \"NaN""#), r#""\\ud83d \"NaN""#);
    }

    #[test]
    fn numbers_that_are_none_are_null() {
        assert_eq!(repaired("[NaN,-Infinity,-1,\"NaN\"]"), "[null,null,-1,\"NaN\"]");
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            repair(&bytes);
        }

        #[test]
        fn good_json_stays(text in "[\\\\ud8c0-9\" ]{0,40}") {
            let good = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(repaired(&good), good);
        }
    }
}
