//! Joins what line breaks divide: a token or base64 that a terminal, an editor or an encoder wrapped.

use std::ops::Range;

use crate::unescaped_part::UnescapedPart;

/// Fewer characters after a line break are a word.
const MIN_REST_BYTES: usize = 4;

/// How far from a line break its line is read.
const MAX_LINE_BYTES: usize = 300;

/// Longer texts are files.
const MAX_JOINED_BYTES: usize = 64 << 10;

/// The parts of a text whose lines belong together, without the line breaks. A part is divided after one of its long
/// runs of letters and digits.
pub(crate) fn find_divided_parts(text: &[u8], runs: &[Range<usize>]) -> Vec<UnescapedPart> {
    let mut parts = Vec::new();
    let mut open: Option<UnescapedPart> = None;
    for run in runs {
        let Some((head_end, rest)) = joint_after(text, run) else { continue };
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

/// Where the token before a line break ends, and where its rest starts. `None` if a run is not divided at its end.
fn joint_after(text: &[u8], run: &Range<usize>) -> Option<(usize, usize)> {
    let is_gap = |byte: &&u8| b" \t\r\\\"'+".contains(byte);
    let padding = text[run.end..].iter().take(2).take_while(|byte| **byte == b'=').count();
    let head_end = run.end + padding;
    let gap = text[head_end..].iter().take(6).take_while(is_gap).count();
    let line_break = head_end + gap;
    let head = &text[run.start.max(run.end.saturating_sub(40))..run.end];
    let is_token = head.len() >= 24 || head.iter().any(u8::is_ascii_digit);
    if text.get(line_break) != Some(&b'\n') || !is_token {
        return None;
    }
    let after = &text[line_break + 1..];
    let is_inner = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/_-.~|$".contains(byte);
    let rest = line_break + 1 + after.iter().take(40).take_while(is_gap).count();
    let length = text[rest..].iter().take(MAX_LINE_BYTES).take_while(is_inner).count();
    let padding = text[rest + length..].iter().take(2).take_while(|byte| **byte == b'=').count();
    let end = text.get(rest + length + padding);
    let part = &text[rest..rest + length];
    let is_closed =
        end.is_none_or(|byte| byte.is_ascii_whitespace() || b"\"'`\\,;)<]}".contains(byte));
    let is_random = part.iter().any(u8::is_ascii_digit) || length >= 24;
    (length >= MIN_REST_BYTES && is_closed && is_random).then_some((head_end, rest))
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
    use crate::encoded_text::find_long_runs;

    fn joined(text: &str) -> Vec<String> {
        let parts = find_divided_parts(text.as_bytes(), &find_long_runs(text.as_bytes()));
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
        assert_eq!(
            joined("k: q7Rz0vXw93JkPm4Xs8Dv\n  LkTn5Yb2 x\nend"),
            ["k: q7Rz0vXw93JkPm4Xs8DvLkTn5Yb2 x"]
        );
        assert_eq!(
            joined("a = \"q7Rz0vXw93JkPm4Xs8Dv\" +\n  \"LkTn5Yb2\";"),
            ["a = \"q7Rz0vXw93JkPm4Xs8DvLkTn5Yb2\";"]
        );
        let three = "q7Rz0vXw93LkWm3Bt6Cn\nTn5Yb2Hd8Fg1Qs7Jx9Zr\nkJhGfDs4\n\nx";
        assert_eq!(joined(three), ["q7Rz0vXw93LkWm3Bt6CnTn5Yb2Hd8Fg1Qs7Jx9ZrkJhGfDs4"]);
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
