//! Joins what line breaks divide: a token or base64 that a terminal, an editor or an encoder wrapped.

use crate::encoded_text::UnescapedPart;

/// Fewer characters before a line break are a word.
const MIN_HEAD_BYTES: usize = 8;

/// Fewer characters after a line break are a word.
const MIN_REST_BYTES: usize = 4;

/// How far from a line break its line is read.
const MAX_LINE_BYTES: usize = 300;

/// Longer texts are files.
const MAX_JOINED_BYTES: usize = 64 << 10;

/// The parts of a text whose lines belong together, without the line breaks.
pub(crate) fn find_divided_parts(text: &[u8]) -> Vec<UnescapedPart> {
    let mut parts = Vec::new();
    let mut open: Option<UnescapedPart> = None;
    for line_break in memchr::memchr_iter(b'\n', text) {
        // Most lines end with other marks.
        if line_break == 0 || BYTE_USES[usize::from(text[line_break - 1])] == 0 {
            continue;
        }
        let Some((head_end, rest)) = joint_at(text, line_break) else { continue };
        // What was joined ends where this joint starts, or this joint starts another part.
        let is_next = open.as_ref().is_some_and(|part| {
            let end = part.offsets[part.decoded.len()];
            end >= head_end && part.decoded.len() < MAX_JOINED_BYTES
        });
        if !is_next {
            parts.extend(open.take());
            open = Some(UnescapedPart {
                decoded: Vec::new(),
                offsets: vec![line_start(text, head_end)],
            });
        }
        if let Some(part) = &mut open {
            join(part, text, head_end, rest);
        }
    }
    parts.extend(open);
    parts
}

/// Cuts a part at the end of its last line, and adds the next line.
fn join(part: &mut UnescapedPart, text: &[u8], head_end: usize, rest: usize) {
    part.offsets.pop();
    let kept = part.offsets.partition_point(|offset| *offset < head_end);
    part.offsets.truncate(kept);
    part.decoded.truncate(kept);
    let first = part.offsets.last().map_or(line_start(text, head_end), |last| last + 1);
    for at in (first..head_end).chain(rest..line_end(text, rest)) {
        part.decoded.push(text[at]);
        part.offsets.push(at);
    }
    part.offsets.push(line_end(text, rest));
}

/// Where the token before a line break ends, and where its rest starts. `None` if nothing is divided there.
fn joint_at(text: &[u8], line_break: usize) -> Option<(usize, usize)> {
    let before = &text[..line_break];
    let is_plus_inner = !matches!(before, [.., b' ' | b'"' | b'\'', b'+']);
    let last = BYTE_USES[usize::from(*before.last()?)];
    let gap = match last & INNER != 0 && is_plus_inner {
        true => 0,
        false => before.iter().rev().take(6).take_while(|byte| has_use(**byte, GAP)).count(),
    };
    let head_end = line_break - gap;
    let near = &text[head_end.checked_sub(MIN_HEAD_BYTES)?..head_end];
    if near.iter().rev().any(|byte| !has_use(*byte, INNER)) {
        return None;
    }
    let is_inner = |byte: &&u8| has_use(**byte, INNER);
    let head = text[..head_end].iter().rev().take(40).take_while(is_inner);
    if !head.clone().any(u8::is_ascii_digit) && head.count() < 24 {
        return None;
    }
    let after = &text[line_break + 1..];
    let rest =
        line_break + 1 + after.iter().take(40).take_while(|byte| has_use(**byte, GAP)).count();
    let length = text[rest..].iter().take(MAX_LINE_BYTES).take_while(is_inner).count();
    let padding = text[rest + length..].iter().take(2).take_while(|byte| **byte == b'=').count();
    let end = text.get(rest + length + padding);
    let part = &text[rest..rest + length];
    let is_closed =
        end.is_none_or(|byte| byte.is_ascii_whitespace() || b"\"'`\\,;)<]}".contains(byte));
    let is_random = part.iter().any(u8::is_ascii_digit) || length >= 24;
    (length >= MIN_REST_BYTES && is_closed && is_random).then_some((head_end, rest))
}

/// A byte of tokens.
const INNER: u8 = 1;

/// A byte between the halves of a token: spaces, quotes and operators.
const GAP: u8 = 2;

/// For each byte, whether it is one of tokens, between their halves, or both.
const BYTE_USES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let letter = byte as u8;
        let is_mark = matches!(letter, b'+' | b'/' | b'_' | b'-' | b'.' | b'~' | b'|' | b'$');
        if letter.is_ascii_alphanumeric() || is_mark {
            table[byte] |= INNER;
        }
        if matches!(letter, b' ' | b'\t' | b'\r' | b'\\' | b'"' | b'\'' | b'+') {
            table[byte] |= GAP;
        }
        byte += 1;
    }
    table
};

fn has_use(byte: u8, wanted: u8) -> bool {
    BYTE_USES[usize::from(byte)] & wanted != 0
}

fn line_start(text: &[u8], at: usize) -> usize {
    at - text[..at].iter().rev().take(MAX_LINE_BYTES).take_while(|byte| **byte != b'\n').count()
}

fn line_end(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().take(MAX_LINE_BYTES).take_while(|byte| **byte != b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(text: &str) -> Vec<String> {
        let parts = find_divided_parts(text.as_bytes());
        for part in &parts {
            assert_eq!(part.offsets.len(), part.decoded.len() + 1);
            assert!(
                part.decoded
                    .iter()
                    .zip(&part.offsets)
                    .all(|(byte, at)| text.as_bytes()[*at] == *byte)
            );
        }
        parts.into_iter().map(|part| String::from_utf8(part.decoded).unwrap()).collect()
    }

    #[test]
    fn wrapped_tokens_are_joined() {
        assert_eq!(joined("k: q7Rz0vXw93\n  LkTn5Yb2 x\nend"), ["k: q7Rz0vXw93LkTn5Yb2 x"]);
        assert_eq!(
            joined("a = \"q7Rz0vXw93\" +\n  \"LkTn5Yb2\";"),
            ["a = \"q7Rz0vXw93LkTn5Yb2\";"]
        );
        let three = "q7Rz0vXw93Lk\nTn5Yb2Hd8Fg1\nkJhGfDs4\n\nx";
        assert_eq!(joined(three), ["q7Rz0vXw93LkTn5Yb2Hd8Fg1kJhGfDs4"]);
    }

    #[test]
    fn other_lines_are_not_joined() {
        for text in [
            "let a2 = b;\nlet c3 = d;",
            "version_2_of_it\nthe next line",
            "FOO12345=a1b2c3d4\nBAR2=1",
        ] {
            assert!(joined(text).is_empty(), "{text}");
        }
    }
}
