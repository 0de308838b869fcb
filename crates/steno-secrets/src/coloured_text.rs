//! Removes the escapes that colour output on a terminal, because they hide where a name or a token starts.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::encoded_text::UnescapedPart;

/// The escape character, and how JSON writes it.
const ESCAPES: [&[u8]; 2] = [b"\x1b", b"\\u001b"];

static QUOTED_ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u001b["));

/// Longer lines are not read to their end.
const MAX_LINE_BYTES: usize = 4096;

/// The lines of a text that have colours, without the escapes.
pub(crate) fn find_coloured_parts(text: &[u8]) -> Vec<UnescapedPart> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(escape) = find_escape(text, at) {
        let is_inner = |byte: &&u8| **byte != b'\n';
        let before =
            text[at..escape].iter().rev().take(MAX_LINE_BYTES).take_while(is_inner).count();
        let after = text[escape..].iter().take(MAX_LINE_BYTES).take_while(is_inner).count();
        parts.push(remove_escapes(text, escape - before, escape + after));
        at = escape + after.max(1);
    }
    parts
}

/// The next escape that sets a colour.
fn find_escape(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let plain = memchr::memchr(0x1b, &text[at..]);
        let quoted = QUOTED_ESCAPE.find(&text[at..]);
        let escape = at + plain.into_iter().chain(quoted).min()?;
        if escape_length(&text[escape..]).is_some() {
            return Some(escape);
        }
        at = escape + 1;
    }
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

/// The length of an escape such as `ESC [ 1 ; 32 m` at the start of a text.
fn escape_length(text: &[u8]) -> Option<usize> {
    let start = ESCAPES.iter().find(|it| text.starts_with(it))?.len();
    let numbers = text.get(start + 1..)?.iter().take(20);
    let numbers = numbers.take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
    let last = start + 1 + numbers;
    let is_escape = text[start] == b'[' && matches!(text.get(last), Some(b'm' | b'K'));
    is_escape.then_some(last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_removed_and_mapped_back() {
        for text in ["a\n\x1b[1;32mtoken\x1b[0m=x\nb [m", "\\u001b[32mtoken\\u001b[K=x"] {
            let parts = find_coloured_parts(text.as_bytes());
            assert_eq!(parts.len(), 1, "{text}");
            assert_eq!(parts[0].decoded, b"token=x");
            assert_eq!(&text[parts[0].original_range(&(6..7))], "x");
        }
        assert!(find_coloured_parts(b"a[1] [m \\u001c[0m").is_empty());
    }
}
