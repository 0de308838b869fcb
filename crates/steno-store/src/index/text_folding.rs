//! Folds texts and queries into the form that the full-text index compares.
//!
//! SQLite's tokenizer splits at everything except letters and digits, lowers the case and drops accents. So it finds
//! `snake_case` and paths by their parts. This module adds three things: the parts of `camelCase` words go to a column
//! of their own, Chinese, Japanese and Korean text becomes pairs of characters, and base64 is left out.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use foldhash::fast::RandomState;
use wide::u8x16;

/// Minimum length of a run of letters, digits, `+` and `/` that counts as base64.
const MIN_ENCODED_RUN: usize = 256;

/// Minimum length of a whole line of such characters that counts as wrapped base64.
const MIN_WRAPPED_LINE: usize = 60;

/// A text as indexed.
#[derive(Debug, PartialEq, Eq)]
pub struct IndexableText<'a> {
    /// The words, in order.
    pub text: Cow<'a, str>,
    /// The parts of words such as `parseLine`, each word once.
    pub parts: String,
}

/// Folds a text.
pub fn fold_text(text: &str) -> IndexableText<'_> {
    let shown = strip_encoded(text);
    let mut parts = String::new();
    push_camel_parts(&shown, &mut parts);
    let text = if has_cjk(&shown) {
        Cow::Owned(pair_characters(&shown, RunEnding::Single))
    } else {
        shown
    };
    IndexableText { text, parts }
}

/// Whether a text has a character for which [`is_cjk`] holds. In UTF-8 those start with a byte of at least
/// [`FIRST_CJK`], so most texts need only a scan of their bytes.
fn has_cjk(text: &str) -> bool {
    let largest = |bytes: &[u8]| bytes.iter().fold(0, |largest, byte| largest.max(*byte));
    text.as_bytes().chunks(SCAN_BLOCK_BYTES).any(|block| largest(block) >= FIRST_CJK)
        && text.chars().any(is_cjk)
}

/// Folds a word or phrase of a query. Returns the text, and the parts if it is one word such as `parseLine`.
pub(crate) fn fold_query(text: &str) -> (String, Option<String>) {
    let mut parts = String::new();
    if !text.contains(char::is_whitespace) {
        push_camel_parts(text, &mut parts);
    }
    let is_word = text.chars().all(char::is_alphanumeric);
    (
        pair_characters(text, RunEnding::None),
        Some(parts).filter(|parts| is_word && !parts.is_empty()),
    )
}

/// Whether a character belongs to a script without spaces between words.
pub(crate) fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}' | '\u{20000}'..='\u{323af}')
}

/// The first UTF-8 byte of U+3000. No such character comes before that.
const FIRST_CJK: u8 = 0xe3;

/// How to end a run of such characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunEnding {
    /// With the last character alone, so that each character starts a token.
    Single,
    /// With nothing, unless the run has one character or other words follow.
    None,
}

/// Replaces runs of such characters by overlapping pairs: `日本語` becomes `日本 本語 語`.
fn pair_characters(text: &str, ending: RunEnding) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut chars = text.chars().peekable();
    let mut length = 0;
    while let Some(c) = chars.next() {
        if !is_cjk(c) {
            if std::mem::take(&mut length) > 0 {
                out.push(' ');
            }
            out.push(c);
            continue;
        }
        length += 1;
        match chars.peek().copied().filter(|next| is_cjk(*next)) {
            Some(next) => out.extend([' ', c, next]),
            None if ending == RunEnding::Single || length == 1 => out.extend([' ', c]),
            // In the indexed text, other words follow the single last character.
            None if chars.clone().any(char::is_alphanumeric) => out.extend([' ', c]),
            None => {}
        }
    }
    out
}

/// Appends the parts of every word with an inner capital: `HTTPServer` becomes `HTTP Server`.
///
/// Such words are rare, so a scan of 64 bytes at a time looks for inner capitals first.
fn push_camel_parts(text: &str, out: &mut String) {
    let mut done: HashSet<&str, RandomState> = HashSet::default();
    let bytes = text.as_bytes();
    let (mut looked_at, mut follows_word) = (0, 0);
    for (number, block) in bytes.chunks(SCAN_BLOCK_BYTES).enumerate() {
        let (capitals, words) = capital_and_word_masks(block);
        let mut inner = capitals & (words << 1 | follows_word);
        follows_word = words >> (SCAN_BLOCK_BYTES - 1);
        while inner != 0 {
            let at = number * SCAN_BLOCK_BYTES + inner.trailing_zeros() as usize;
            inner &= inner - 1;
            if at < looked_at {
                continue;
            }
            let word = word_around(bytes, at);
            looked_at = word.end;
            let has_small =
                bytes[word.clone()].iter().any(|byte| byte_class(*byte) & LOWER_CLASS != 0);
            if has_small && done.insert(&text[word.clone()]) {
                push_word_parts(&text[word], out);
            }
        }
    }
}

/// Bytes per scan step.
const SCAN_BLOCK_BYTES: usize = 64;

/// Bit masks of the capitals and the word bytes in a block.
fn capital_and_word_masks(block: &[u8]) -> (u64, u64) {
    let mut bytes = [b' '; SCAN_BLOCK_BYTES];
    bytes[..block.len()].copy_from_slice(block);
    let (mut capitals, mut words) = (0, 0);
    for (part, bytes) in bytes.as_chunks::<16>().0.iter().enumerate() {
        let bytes = u8x16::new(*bytes);
        let within = |bytes: u8x16, first: u8, last: u8| {
            let (first, last) = (u8x16::splat(first), u8x16::splat(last));
            bytes.max(first).min(last).simd_eq(bytes)
        };
        let letters = within(bytes | u8x16::splat(0x20), b'a', b'z');
        let other_scripts = bytes & u8x16::splat(0x80);
        let word = letters | within(bytes, b'0', b'9') | other_scripts;
        capitals |= u64::from(within(bytes, b'A', b'Z').to_bitmask()) << (16 * part);
        words |= u64::from(word.to_bitmask()) << (16 * part);
    }
    (capitals, words)
}

/// The range of the word around `at`.
fn word_around(bytes: &[u8], at: usize) -> Range<usize> {
    let is_word = |byte: &&u8| byte_class(**byte) & WORD_CLASS != 0;
    let before = bytes[..at].iter().rev().take_while(is_word).count();
    at - before..at + bytes[at..].iter().take_while(is_word).count()
}

fn byte_class(byte: u8) -> u8 {
    BYTE_CLASSES[usize::from(byte)]
}

/// Letters and digits. Bytes over 0x7f count, so that no character is cut.
const WORD_CLASS: u8 = 1;
const UPPER_CLASS: u8 = 2;
/// Bytes over 0x7f count too.
const LOWER_CLASS: u8 = 4;
/// Base64: letters, digits, `+`, `/` and `=`.
const BASE64_CLASS: u8 = 8;

/// The classes of each byte.
const BYTE_CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        classes[at] = match byte {
            b'A'..=b'Z' => WORD_CLASS | UPPER_CLASS | BASE64_CLASS,
            b'a'..=b'z' => WORD_CLASS | LOWER_CLASS | BASE64_CLASS,
            b'0'..=b'9' => WORD_CLASS | BASE64_CLASS,
            b'+' | b'/' | b'=' => BASE64_CLASS,
            0x80.. => WORD_CLASS | LOWER_CLASS,
            _ => 0,
        };
        at += 1;
    }
    classes
};

fn push_word_parts(word: &str, out: &mut String) {
    let bytes = word.as_bytes();
    let mut begin = 0;
    for at in 1..bytes.len() {
        let begins = bytes[at].is_ascii_uppercase()
            && (!bytes[at - 1].is_ascii_uppercase()
                || bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase));
        if begins {
            out.push_str(&word[begin..at]);
            out.push(' ');
            begin = at;
        }
    }
    if begin > 0 {
        out.push_str(&word[begin..]);
        out.push(' ');
    }
}

/// Removes runs of base64, which nobody searches for and which would fill the index.
fn strip_encoded(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut kept, mut before) = (0, 0..0);
    while let Some(run) = next_long_run(bytes, before.end) {
        let is_wrapped = is_whole_line(bytes, &run) && follows_equal_line(bytes, &run, &before);
        if (run.len() >= MIN_ENCODED_RUN || is_wrapped)
            && has_mixed_case_and_digits(&bytes[run.clone()])
        {
            out.push_str(&text[kept..run.start]);
            kept = run.end;
        }
        before = run;
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

/// The next run that is long enough for a line of base64. Skips most of the text without reading it.
fn next_long_run(bytes: &[u8], from: usize) -> Option<Range<usize>> {
    let mut begin = from;
    loop {
        let window = bytes.get(begin..begin + MIN_WRAPPED_LINE)?;
        match window.iter().rposition(|byte| !is_base64_byte(*byte)) {
            Some(other) => begin += other + 1,
            None => break,
        }
    }
    let rest = bytes[begin..].iter().take_while(|byte| is_base64_byte(**byte));
    Some(begin..begin + rest.count())
}

fn is_whole_line(bytes: &[u8], run: &Range<usize>) -> bool {
    (run.start == 0 || bytes[run.start - 1] == b'\n')
        && bytes.get(run.end).is_none_or(|byte| matches!(byte, b'\n' | b'\r'))
}

/// Whether the previous run is a line of equal length, with no other base64 characters between.
fn follows_equal_line(bytes: &[u8], run: &Range<usize>, before: &Range<usize>) -> bool {
    run.len() == before.len()
        && is_whole_line(bytes, before)
        && !bytes[before.end..run.start].iter().any(|byte| is_base64_byte(*byte))
}

fn is_base64_byte(byte: u8) -> bool {
    BYTE_CLASSES[usize::from(byte)] & BASE64_CLASS != 0
}

/// Whether a run has lower case, upper case and digits, as base64 does.
fn has_mixed_case_and_digits(run: &[u8]) -> bool {
    run.iter().any(u8::is_ascii_lowercase)
        && run.iter().any(u8::is_ascii_uppercase)
        && run.iter().any(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A reference implementation that checks every run.
    fn without_encoded_plainly(text: &str) -> String {
        let bytes = text.as_bytes();
        let (mut out, mut kept, mut at, mut before) = (String::new(), 0, 0, 0);
        while at < bytes.len() {
            let length = bytes[at..].iter().take_while(|byte| is_base64_byte(**byte)).count();
            let is_line = is_whole_line(bytes, &(at..at + length));
            let is_wrapped = is_line && length >= MIN_WRAPPED_LINE && length == before;
            if (length >= MIN_ENCODED_RUN || is_wrapped)
                && has_mixed_case_and_digits(&bytes[at..at + length])
            {
                out.push_str(&text[kept..at]);
                kept = at + length;
            }
            if length > 0 {
                before = if is_line { length } else { 0 };
            }
            at += length.max(1);
        }
        out + &text[kept..]
    }

    /// A reference implementation that checks every word.
    fn camel_parts_plainly(text: &str) -> String {
        let (mut out, mut done) = (String::new(), HashSet::new());
        let is_word = |c: char| c.is_ascii_alphanumeric() || !c.is_ascii();
        for word in text.split(|c| !is_word(c)) {
            let has_inner_capital = word.bytes().skip(1).any(|byte| byte.is_ascii_uppercase());
            let has_small = word.bytes().any(|byte| byte.is_ascii_lowercase() || byte >= 0x80);
            if has_inner_capital && has_small && done.insert(word) {
                push_word_parts(word, &mut out);
            }
        }
        out
    }

    proptest! {
        #[test]
        fn no_part_is_missed(text in "([ .@`\\[{a-c0-9]{0,40}|[A-Cxé東]{0,9}){0,12}") {
            prop_assert_eq!(fold_text(&text).parts, camel_parts_plainly(&text));
        }

        #[test]
        fn no_run_is_missed(
            pieces in prop::collection::vec(("[ \n\ra-]{0,3}", "aB3+|x|word", 0..70_usize), 0..12)
        ) {
            let text: String =
                pieces.iter().map(|(gap, run, count)| gap.clone() + &run.repeat(*count)).collect();
            prop_assert_eq!(strip_encoded(&text), without_encoded_plainly(&text));
        }
    }

    #[test]
    fn indexes_words_with_their_parts() {
        let folded = fold_text("let parseJSONLine = HTTPServer::new(); plain GitHub parseJSONLine");
        assert_eq!(
            folded.text,
            "let parseJSONLine = HTTPServer::new(); plain GitHub parseJSONLine"
        );
        assert_eq!(folded.parts, "parse JSON Line HTTP Server Git Hub ");
        assert_eq!(
            fold_text("ALLCAPS lower Title naïveCase 東京Tower").parts,
            "naïve Case 東京 Tower "
        );
    }

    #[test]
    fn no_script_without_spaces_is_passed_over() {
        for c in ('\0'..=char::MAX).filter(|c| is_cjk(*c)) {
            assert!(has_cjk(&format!("{}{c}", " ".repeat(SCAN_BLOCK_BYTES))), "{c}");
        }
        assert!(!has_cjk("naïve → 🚀"));
    }

    #[test]
    fn scripts_without_spaces_become_pairs() {
        assert_eq!(fold_text("Rust言語版 ok").text, "Rust 言語 語版 版  ok");
        assert_eq!(fold_query("言語版").0, " 言語 語版");
        assert_eq!(fold_query("版").0, " 版");
    }

    #[test]
    fn encoded_bytes_are_left_out() {
        let encoded: String = "aB3/".repeat(100);
        assert_eq!(fold_text(&format!("see {encoded} end")).text, "see  end");
        let line = "aB3+".repeat(19);
        let wrapped = format!("begin\n{line}\n{line}\n{line}\nend");
        assert_eq!(fold_text(&wrapped).text, format!("begin\n{line}\n\n\nend"));
        let path = "src/deep/Folder1/".repeat(10);
        assert_eq!(fold_text(&path).text, path);
    }
}
