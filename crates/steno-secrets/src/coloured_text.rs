//! Removes the escapes that colour output on a terminal, because they hide where a name or a token starts.

use crate::unescaped_part::UnescapedPart;

/// Longer lines are not read to their end.
const MAX_LINE_BYTES: usize = 4096;

/// The lines of a text that have colours, without the escapes.
pub(crate) fn find_coloured_parts(text: &[u8]) -> Vec<UnescapedPart> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(escape) = memchr::memchr(0x1b, &text[at..]).map(|offset| at + offset) {
        let is_inner = |byte: &&u8| **byte != b'\n';
        let before =
            text[at..escape].iter().rev().take(MAX_LINE_BYTES).take_while(is_inner).count();
        let after = text[escape..].iter().take(MAX_LINE_BYTES).take_while(is_inner).count();
        parts.push(remove_escapes(text, escape - before, escape + after));
        at = escape + after.max(1);
    }
    parts
}

fn remove_escapes(text: &[u8], start: usize, end: usize) -> UnescapedPart {
    let (mut decoded, mut offsets) = (Vec::new(), Vec::new());
    let mut at = start;
    while at < end {
        match escape_length(&text[at..end]) {
            Some(length) => at += length,
            None => {
                decoded.push(text[at]);
                offsets.push(at);
                at += 1;
            }
        }
    }
    offsets.push(end);
    UnescapedPart { decoded, offsets }
}

fn escape_length(text: &[u8]) -> Option<usize> {
    Some(1 + color_length(text.strip_prefix(b"\x1b")?)?)
}

/// The length of what follows the escape character in `ESC [ 1 ; 32 m`.
pub(crate) fn color_length(text: &[u8]) -> Option<usize> {
    let numbers = text.strip_prefix(b"[")?.iter().take(20);
    let numbers = numbers.take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
    matches!(text.get(1 + numbers), Some(b'm' | b'K')).then_some(numbers + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_removed_and_mapped_back() {
        let text = "a\n\x1b[1;32mtoken\x1b[0m=x\nb [m";
        let parts = find_coloured_parts(text.as_bytes());
        assert_eq!(parts.len(), 1, "{text}");
        assert_eq!(parts[0].decoded, b"token=x");
        assert_eq!(&text[parts[0].original_range(&(6..7))], "x");
        assert!(find_coloured_parts(b"a[1] [m \\u001c[0m").is_empty());
    }
}
