//! Finds the end of a JSON string, also of one that arrives in parts.

/// Returns the offset after the closing quote, or `None` if the string continues after `bytes`.
///
/// `bytes` starts inside the string. `is_escaped` says whether its first byte is escaped by the part before; it is set
/// to whether the first byte of the next part is.
pub fn find_string_end(bytes: &[u8], is_escaped: &mut bool) -> Option<usize> {
    if bytes.is_empty() {
        return None;
    }
    let mut at = usize::from(std::mem::take(is_escaped));
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at..]) {
        at += found + 1;
        if bytes[at - 1] == b'"' {
            return Some(at);
        }
        if at == bytes.len() {
            *is_escaped = true;
            return None;
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of a string that arrives in two parts.
    fn find_in_parts(text: &[u8], cut: usize) -> Option<usize> {
        let mut is_escaped = false;
        find_string_end(&text[..cut], &mut is_escaped)
            .or_else(|| Some(cut + find_string_end(&text[cut..], &mut is_escaped)?))
    }

    #[test]
    fn escaped_quotes_do_not_end_a_string() {
        for (text, end) in [
            (&br#"a"b"#[..], Some(2)),
            (br#"a\"b"c"#, Some(5)),
            (br#"a\\"b"#, Some(4)),
            (br#"\"\\\"""#, Some(7)),
            (br#"a\""#, None),
            (b"", None),
        ] {
            for cut in 0..=text.len() {
                assert_eq!(find_in_parts(text, cut), end, "{:?} {cut}", text.escape_ascii());
            }
        }
    }
}
