//! Reads a value in quotes, whose quotes may themselves be escaped: `"x"`, `\"x\"`, `\\\"x\\\"`.

use std::ops::Range;

/// Longer values are not read.
const MAX_VALUE_BYTES: usize = 4096;

/// A value in quotes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QuotedValue {
    /// Without the quotes.
    pub(crate) range: Range<usize>,
    /// The offset after the closing quote.
    pub(crate) end: usize,
}

impl QuotedValue {
    /// Reads a value whose opening quote, or its first backslash, is at `at`. `None` if it has no end in its
    /// line, which a backslash continues.
    pub(crate) fn read(text: &[u8], at: usize) -> Option<Self> {
        let slashes = count_backslashes(&text[at..]);
        let quote = *text.get(at + slashes)?;
        if !b"\"'`".contains(&quote) {
            return None;
        }
        // Three quotes start a literal of several lines, of which the first is read.
        let is_triple = slashes == 0 && text[at..].starts_with(&[quote; 3]);
        let start = at + slashes + if is_triple { 3 } else { 1 };
        let mut run = 0;
        for (offset, byte) in text[start..].iter().enumerate().take(MAX_VALUE_BYTES) {
            let here = start + offset;
            match *byte {
                b'\\' => run += 1,
                b'\n' if run % 2 == 1 => run = 0,
                b'\n' => return None,
                byte if byte == quote && closes(slashes, run) => {
                    return Some(Self { range: start..here - run.min(slashes), end: here + 1 });
                }
                _ => run = 0,
            }
        }
        None
    }

    /// Reads a value and the literals that are joined to it: `"one" + "two"`.
    pub(crate) fn read_joined(text: &[u8], at: usize) -> Option<(Self, Vec<Range<usize>>)> {
        let mut value = Self::read(text, at)?;
        let mut parts = vec![value.range.clone()];
        while let Some(next) = find_joined(text, value.end) {
            let Some(part) = Self::read(text, next) else { break };
            parts.push(part.range.clone());
            value = Self { range: value.range.start..part.range.end, end: part.end };
        }
        Some((value, parts))
    }
}

/// Whether a quote after `run` backslashes ends a value that started after `slashes`.
fn closes(slashes: usize, run: usize) -> bool {
    match slashes {
        0 => run.is_multiple_of(2),
        _ => run <= slashes,
    }
}

fn count_backslashes(text: &[u8]) -> usize {
    text.iter().take(8).take_while(|byte| **byte == b'\\').count()
}

/// The offset of the next literal, if an operator joins it.
fn find_joined(text: &[u8], end: usize) -> Option<usize> {
    let skip_spaces = |from: usize| {
        let spaces = text[from..].iter().take(60).take_while(|byte| byte.is_ascii_whitespace());
        from + spaces.count()
    };
    let operator = skip_spaces(end);
    // Python and C join literals of successive lines.
    if matches!(text.get(operator), Some(b'"' | b'\'')) && text[end..operator].contains(&b'\n') {
        let next = QuotedValue::read(text, operator)?;
        let is_part = text[next.range.clone()].iter().all(u8::is_ascii_graphic)
            && !matches!(text.get(next.end), Some(b':' | b','));
        return is_part.then_some(operator);
    }
    if !matches!(text.get(operator), Some(b'+' | b'.' | b'\\' | b'&')) {
        return None;
    }
    let is_continued_line = text[operator] == b'\\';
    if is_continued_line && text.get(operator + 1) != Some(&b'\n') {
        return None;
    }
    let next = skip_spaces(operator + 1);
    matches!(text.get(next), Some(b'"' | b'\'')).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_may_be_escaped() {
        for (text, value) in [
            (r#""a b" c"#, "a b"),
            (r#"'it' x"#, "it"),
            (r#""a\"b" c"#, r#"a\"b"#),
            (r#"\"one\", \"two\""#, "one"),
            (r#"\\\"one\\\", x"#, "one"),
            (r#"\"one" x"#, "one"),
        ] {
            assert_eq!(
                &text[QuotedValue::read(text.as_bytes(), 0).unwrap().range],
                value,
                "{text}"
            );
        }
        assert_eq!(QuotedValue::read(b"\"open\n\"", 0), None);
        let (joined, parts) = QuotedValue::read_joined(b"\"ab\" +\n  \"cd\";", 0).unwrap();
        assert_eq!((joined.range, parts.len()), (1..12, 2));
    }
}
