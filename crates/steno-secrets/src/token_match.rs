//! Matches tokens: a prefix, then characters of an alphabet.

use std::ops::Range;

use crate::letter_pairs::word_likeness;
use crate::randomness::changes_kind_often;
use crate::secret_rule::TokenAlphabet;

/// A run of base64 this long before a token means that the token is part of encoded data.
const MIN_ENCODED_RUN: usize = 40;

/// The greatest number of bytes between the two halves of a token that a line break divides.
const MAX_BREAK_BYTES: usize = 40;

/// Fewer characters on the next line are not the rest of a token.
const MIN_CONTINUATION: usize = 8;

/// The token that starts at `prefix`, if it has the right length.
pub(crate) fn match_token(
    text: &[u8],
    prefix: Range<usize>,
    alphabet: TokenAlphabet,
    length: (usize, usize),
) -> Option<Range<usize>> {
    if !is_token_start(text, prefix.start) {
        return None;
    }
    let body = count_run(text, prefix.end, alphabet, length.1 + 1);
    if body > length.1 {
        return None;
    }
    let end = if body >= length.0 {
        // A dot or dash at the end belongs to the sentence, unless the token would be too short without it.
        let trimmed = text[prefix.end..prefix.end + body]
            .iter()
            .rev()
            .take(body - length.0)
            .take_while(|byte| b".-".contains(byte))
            .count();
        let end = prefix.end + body - trimmed;
        find_continuation(text, end, alphabet, length.1 - (body - trimmed)).unwrap_or(end)
    } else {
        match_broken_token(text, prefix.end, alphabet, length)?
    };
    // The name of a file, or words: a token of this alphabet has digits.
    let is_name = alphabet == TokenAlphabet::Loose
        && !text[prefix.end..end].iter().any(u8::is_ascii_digit)
        || is_file_name_end(&text[end..]);
    (!is_name && is_token_body(&text[prefix.end..end])).then_some(prefix.start..end)
}

/// Whether the ending of a file's name follows, such as `.png`.
fn is_file_name_end(after: &[u8]) -> bool {
    const ENDINGS: [&[u8]; 9] =
        [b"png", b"jpg", b"svg", b"gif", b"css", b"js", b"html", b"woff2", b"map"];
    after.strip_prefix(b".").is_some_and(|after| {
        let ending = ENDINGS.iter().find(|ending| after.starts_with(ending));
        ending.is_some_and(|it| !after.get(it.len()).is_some_and(u8::is_ascii_alphanumeric))
    })
}

/// The end of a token that a line break divides, as a terminal or an editor does.
fn match_broken_token(
    text: &[u8],
    start: usize,
    alphabet: TokenAlphabet,
    length: (usize, usize),
) -> Option<usize> {
    // Without an exact length, nothing says where the second half ends.
    let first = count_run(text, start, alphabet, length.1);
    if first < 6 {
        return None;
    }
    let second_start = skip_line_break(text, start + first)?;
    let second = count_run(text, second_start, alphabet, length.1 + 1);
    let total = first + second;
    let halves = [&text[start..start + first], &text[second_start..second_start + second]].concat();
    let is_random = halves.iter().any(u8::is_ascii_digit)
        && word_likeness(&halves).is_none_or(|likeness| likeness < 0.7);
    (second >= 4 && (length.0..=length.1).contains(&total) && is_random)
        .then_some(second_start + second)
}

/// The end of the rest of a long token on the next line. It has capitals, small letters and digits, as no word has.
fn find_continuation(
    text: &[u8],
    end: usize,
    alphabet: TokenAlphabet,
    most: usize,
) -> Option<usize> {
    if most < MIN_CONTINUATION || alphabet == TokenAlphabet::LowerHex {
        return None;
    }
    let start = skip_line_break(text, end)?;
    let length = count_run(text, start, alphabet, most + 1);
    let part = &text[start..start + length];
    let is_rest = (MIN_CONTINUATION..=most).contains(&length) && changes_kind_often(part);
    is_rest.then_some(start + length)
}

/// The offset after a line break with what quotes and joins the two lines. `None` if there is no break.
fn skip_line_break(text: &[u8], at: usize) -> Option<usize> {
    let rest = &text[at..];
    let is_joint = |byte: &&u8| b" \t\r\n\\\"'+".contains(byte);
    let gap = &rest[..rest.iter().take(MAX_BREAK_BYTES).take_while(is_joint).count()];
    // The letter of an escaped line break is not part of the next line.
    let is_escaped = gap.ends_with(b"\\") && rest.get(gap.len()) == Some(&b'n');
    let has_break = is_escaped || gap.contains(&b'\n') || gap.contains(&b'+');
    has_break.then_some(at + gap.len() + usize::from(is_escaped))
}

fn count_run(text: &[u8], from: usize, alphabet: TokenAlphabet, most: usize) -> usize {
    text[from.min(text.len())..]
        .iter()
        .take(most)
        .take_while(|byte| alphabet.contains(**byte))
        .count()
}

/// Whether a token can start here: not within a word, nor within encoded data.
pub(crate) fn is_token_start(text: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| text[before]) else { return true };
    if before.is_ascii_alphanumeric() {
        // `\n` and `%3D` end with a letter or digit, and are not part of a word.
        let is_escape = at >= 2 && text[at - 2] == b'\\' && b"nrt".contains(&before);
        let is_encoded = at >= 3 && text[at - 3] == b'%' && text[at - 2].is_ascii_hexdigit();
        return is_escape || is_encoded;
    }
    if b"+/".contains(&before) {
        let is_encoded = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
        return text[..at].iter().rev().take(MIN_ENCODED_RUN).take_while(is_encoded).count()
            < MIN_ENCODED_RUN;
    }
    before != b'_' && before != b'-' || at < 2 || !text[at - 2].is_ascii_alphanumeric()
}

/// Whether the characters after a prefix may be a token: not a filler, and not words.
fn is_token_body(body: &[u8]) -> bool {
    let mut seen = [false; 256];
    body.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    let distinct = seen.iter().filter(|seen| **seen).count();
    let lower = body.to_ascii_lowercase();
    let fillers: [&[u8]; 7] =
        [b"your", b"placeholder", b"....", b"redacted", b"replace", b"insert", b"0000000000"];
    let is_crossed_out = body.windows(4).any(|part| part == b"xxxx" || part == b"XXXX");
    let is_filler = is_crossed_out
        || fillers.iter().any(|filler| memchr::memmem::find(&lower, filler).is_some());
    let is_words = !body.iter().any(u8::is_ascii_digit)
        && word_likeness(body).is_some_and(|likeness| likeness >= 0.72);
    distinct >= 5.min(body.len()) && !is_filler && !is_words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(text: &str) -> Option<&str> {
        let at = text.find("tok_").unwrap();
        match_token(text.as_bytes(), at..at + 4, TokenAlphabet::Alnum, (12, 12))
            .map(|range| &text[range])
    }

    #[test]
    fn a_token_has_an_exact_length_and_a_start() {
        assert_eq!(matched("x tok_q7Rz0vXw93Lk."), Some("tok_q7Rz0vXw93Lk"));
        assert_eq!(matched(r"a\ntok_q7Rz0vXw93Lk\n"), Some("tok_q7Rz0vXw93Lk"));
        for text in [
            "tok_q7Rz0vXw93",
            "tok_q7Rz0vXw93Lkx",
            "stok_q7Rz0vXw93Lk",
            "my_tok_q7Rz0vXw93Lk",
            "tok_xxxxxxxxxxxx",
            "tok_handlerthing",
        ] {
            assert_eq!(matched(text), None, "{text}");
        }
    }

    #[test]
    fn a_line_break_does_not_hide_a_token() {
        assert_eq!(matched("tok_q7Rz0vX\n  w93Lk x"), Some("tok_q7Rz0vX\n  w93Lk"));
        assert_eq!(matched("\"tok_q7Rz0vX\" + \"w93Lk\""), Some("tok_q7Rz0vX\" + \"w93Lk"));
        assert_eq!(matched("tok_q7Rz0vX\nnext line"), None);
    }
}
