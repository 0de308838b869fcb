//! Decodes parts of a text that hide secrets: base64, percent-encoding, entities and escaped quotes.

use std::ops::Range;

use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use crate::coloured_text::color_length;
use crate::unescaped_part::UnescapedPart;

/// Shorter runs are words.
const MIN_RUN_BYTES: usize = 20;

/// Shorter runs hold no secret with a known form.
const MIN_ENCODED_BYTES: usize = 24;

/// Longer runs are files, not settings.
const MAX_ENCODED_BYTES: usize = 64 << 10;

/// Longer hexadecimal numbers are files.
const MAX_HEX_BYTES: usize = 1000;

/// Accepts base64 with and without padding.
const LENIENT_BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// A part of a text, and what it encodes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EncodedPart {
    pub(crate) range: Range<usize>,
    pub(crate) decoded: Vec<u8>,
}

/// The long runs of letters, digits, `+`, `/`, `-` and `_` in a text: tokens, hashes and base64.
pub(crate) fn find_long_runs(text: &[u8]) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut at = 0;
    while let Some(start) = find_long_run(text, at) {
        let length = text[start..].iter().take_while(|byte| is_base64(**byte)).count();
        at = start + length;
        runs.push(start..at);
    }
    runs
}

/// What a run encodes, if it is base64 of printable text.
pub(crate) fn decode_base64_run(text: &[u8], run: Range<usize>) -> Option<EncodedPart> {
    if !(MIN_ENCODED_BYTES..=MAX_ENCODED_BYTES).contains(&run.len()) {
        return None;
    }
    let padding = text[run.end..].iter().take(2).take_while(|byte| **byte == b'=').count();
    let range = run.start..run.end + padding;
    Some(EncodedPart { range, decoded: decode_printable(&text[run])? })
}

/// What a run encodes, if it is printable text as a hexadecimal number.
pub(crate) fn decode_hex_run(text: &[u8], run: Range<usize>) -> Option<EncodedPart> {
    if !(2 * MIN_RUN_BYTES..=MAX_HEX_BYTES).contains(&run.len()) || run.len() % 2 == 1 {
        return None;
    }
    let pairs = text[run.clone()].chunks_exact(2);
    let decoded = pairs.map(|pair| decode_hex(pair[0], pair[1]).filter(|it| is_printable(*it)));
    Some(EncodedPart { range: run, decoded: decoded.collect::<Option<_>>()? })
}

/// For each byte, whether it is one of base64 or of its form for URLs. Each byte of a text is looked up at least once.
const IS_BASE64: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let letter = byte as u8;
        table[byte] = letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/' | b'-' | b'_');
        byte += 1;
    }
    table
};

fn is_base64(byte: u8) -> bool {
    IS_BASE64[usize::from(byte)]
}

/// The start of the next run of at least `MIN_RUN_BYTES` from `at` on.
fn find_long_run(text: &[u8], mut at: usize) -> Option<usize> {
    // Looks at one byte of each possible run: if it is not of base64, no run contains it.
    while at + MIN_RUN_BYTES <= text.len() {
        let window = &text[at..at + MIN_RUN_BYTES];
        match window.iter().rposition(|byte| !is_base64(*byte)) {
            Some(last) => at += last + 1,
            None => return Some(at),
        }
    }
    None
}

fn decode_printable(run: &[u8]) -> Option<Vec<u8>> {
    if !starts_printable(run) {
        return None;
    }
    let standard = |run: &[u8]| -> Vec<u8> {
        let swap = |byte: &u8| match byte {
            b'-' => b'+',
            b'_' => b'/',
            byte => *byte,
        };
        run.iter().map(swap).collect()
    };
    let whole = run.len() - usize::from(run.len() % 4 == 1);
    let decoded = LENIENT_BASE64.decode(standard(&run[..whole])).ok()?;
    decoded.iter().copied().all(is_printable).then_some(decoded)
}

/// Whether the first twelve bytes that a run encodes are printable. Few hashes, ids and words do.
fn starts_printable(run: &[u8]) -> bool {
    run.chunks_exact(4).take(4).all(|four| {
        let bits = four.iter().fold(0, |bits, letter| bits << 6 | sextet(*letter));
        let [_, bytes @ ..] = bits.to_be_bytes();
        bytes.into_iter().all(is_printable)
    })
}

/// The six bits that a letter of base64 or of its form for URLs stands for.
fn sextet(letter: u8) -> u32 {
    u32::from(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' | b'-' => 62,
        _ => 63,
    })
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t')
}

/// The parts of a text with escapes that hide what is around a secret: words with percent-encoding, and lines with
/// entities of HTML or escaped quotes such as `\u0022`.
pub(crate) fn find_escaped_parts(text: &[u8]) -> Vec<UnescapedPart> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(escape) = memchr::memchr3(b'%', b'&', b'\\', &text[at..]).map(|it| at + it) {
        if decode_escape(&text[escape..]).is_none() {
            at = escape + 1;
            continue;
        }
        let is_percent = text[escape] == b'%';
        let is_inner = |byte: &&u8| match is_percent {
            true => !byte.is_ascii_whitespace() && !b"\"'<>`".contains(byte),
            false => **byte != b'\n',
        };
        let before = text[at..escape].iter().rev().take(2048).take_while(is_inner).count();
        let after = text[escape..].iter().take(8192).take_while(is_inner).count();
        parts.push(unescape_part(text, escape - before..escape + after));
        at = escape + after.max(1);
    }
    parts
}

fn unescape_part(text: &[u8], range: Range<usize>) -> UnescapedPart {
    let mut decoded = Vec::with_capacity(range.len());
    let mut offsets = Vec::with_capacity(range.len() + 1);
    let mut at = range.start;
    while at < range.end {
        let (byte, length) = decode_escape(&text[at..range.end]).unwrap_or((Some(text[at]), 1));
        if let Some(byte) = byte {
            offsets.push(at);
            decoded.push(byte);
        }
        at += length;
    }
    offsets.push(range.end);
    UnescapedPart { decoded, offsets }
}

/// The byte that an escape at the start of a text encodes, and the escape's length. Colours encode none.
fn decode_escape(text: &[u8]) -> Option<(Option<u8>, usize)> {
    const ENTITIES: [(&[u8], u8); 6] = [
        (b"&quot;", b'"'),
        (b"&amp;", b'&'),
        (b"&lt;", b'<'),
        (b"&gt;", b'>'),
        (b"&#39;", b'\''),
        (b"&#34;", b'"'),
    ];
    match text {
        [b'%', high, low, ..] => Some((Some(decode_hex(*high, *low)?), 3)),
        [b'&', ..] => {
            let entity = ENTITIES.iter().find(|(name, _)| text.starts_with(name));
            entity.map(|(name, byte)| (Some(*byte), name.len()))
        }
        [b'\\', b'u', b'0', b'0', b'1', b'b' | b'B', color @ ..] => {
            color_length(color).map(|length| (None, 6 + length))
        }
        [b'\\', b'u', b'0', b'0', high, low, ..] => {
            let byte = decode_hex(*high, *low)?;
            b"\"'=&<>/+".contains(&byte).then_some((Some(byte), 6))
        }
        _ => None,
    }
}

fn decode_hex(high: u8, low: u8) -> Option<u8> {
    let value = char::from(high).to_digit(16)? * 16 + char::from(low).to_digit(16)?;
    u8::try_from(value).ok().filter(u8::is_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_text_is_decoded_and_pictures_are_not() {
        let text = b"see R0lUSFVCX1RPS0VOPWdocF9hYmNkZWZnaGlqa2xtbm9w= and iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAf";
        let runs = find_long_runs(text).into_iter();
        let parts: Vec<_> = runs.filter_map(|run| decode_base64_run(text, run)).collect();
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].decoded, b"GITHUB_TOKEN=ghp_abcdefghijklmnop");
        assert_eq!(text[parts[0].range.end], b' ');
    }

    #[test]
    fn hexadecimal_text_is_decoded_and_hashes_are_not() {
        let text =
            b"6768705f7137527a3076587739334c6b546e3559 e3b0c44298fc1c149afbf4c8996fb92427ae41e4";
        let decoded = |run| decode_hex_run(text, run).map(|part| part.decoded);
        assert_eq!(decoded(0..40), Some(b"ghp_q7Rz0vXw93LkTn5Y".to_vec()));
        assert_eq!(decoded(41..81), None);
    }

    #[test]
    fn quotes_may_be_entities() {
        let text = b"a &quot;b&quot; \\u0022c\\u0022 \\u001b[0m & \\u001c d\nnext";
        let parts = find_escaped_parts(text);
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].decoded, b"a \"b\" \"c\"  & \\u001c d");
    }

    #[test]
    fn percent_encoding_is_mapped_back() {
        let text = b"go to https://h/?q=token%3Dabc%20d now 100% sure";
        let parts = find_escaped_parts(text);
        assert_eq!(parts.len(), 1);
        let at = memchr::memmem::find(&parts[0].decoded, b"=abc").unwrap();
        assert_eq!(&text[parts[0].original_range(&(at..at + 4))], b"%3Dabc");
    }
}
