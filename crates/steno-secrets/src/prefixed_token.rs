//! Recognises tokens of services that no rule knows: a short prefix, then random characters.

use std::ops::Range;

use crate::letter_pairs::word_likeness;
use crate::randomness::changes_kind_often;

/// Random letters are hardly ever more alike to words.
const MAX_WORD_LIKENESS: f64 = 0.8;

/// Longer runs are encoded data or paths.
const MAX_RUN_BYTES: usize = 600;

/// The fewest random characters after a prefix that says nothing of secrets.
const MIN_UNNAMED_BYTES: usize = 32;

/// Shorter parts of runs are no tokens.
const MIN_PIECE_BYTES: usize = 20;

/// The fewest random characters after a prefix that speaks of keys.
const MIN_NAMED_BYTES: usize = 20;

/// Longer tokens are encoded data.
const MAX_TOKEN_BYTES: usize = 240;

/// Longer parts are no prefix.
const MAX_PART_BYTES: usize = 14;

/// Whether a part of a prefix is one of keys: `acme_live_...`, `acme-pat-...`.
fn names_key(part: &str) -> bool {
    matches!(
        part,
        "access"
            | "admin"
            | "api"
            | "apikey"
            | "at"
            | "auth"
            | "deploy"
            | "key"
            | "live"
            | "oat"
            | "pat"
            | "prd"
            | "pri"
            | "priv"
            | "private"
            | "prod"
            | "refresh"
            | "rt"
            | "sandbox"
            | "sec"
            | "secret"
            | "sk"
            | "svc"
            | "test"
            | "tkn"
            | "tok"
            | "token"
            | "uat"
            | "whsec"
    )
}

/// Whether a long hexadecimal number after a part of a prefix is a key.
fn names_secret(part: &str) -> bool {
    matches!(part, "apikey" | "pri" | "pat" | "secret" | "sk" | "tok" | "token")
        || ["token", "secret", "apikey"].iter().any(|ending| part.ends_with(ending))
}

/// Whether a part is a prefix of what services make public: hashes, ids, names of files.
fn is_public_part(part: &str) -> bool {
    matches!(
        part,
        "acct"
            | "asst"
            | "batch"
            | "blake"
            | "build"
            | "bundle"
            | "call"
            | "chatcmpl"
            | "chunk"
            | "commit"
            | "cs"
            | "css"
            | "cus"
            | "digest"
            | "etag"
            | "evt"
            | "file"
            | "gen"
            | "hash"
            | "img"
            | "index"
            | "integrity"
            | "main"
            | "md"
            | "msg"
            | "nonce"
            | "org"
            | "phc"
            | "pi"
            | "pk"
            | "price"
            | "proj"
            | "pub"
            | "public"
            | "req"
            | "resp"
            | "run"
            | "session"
            | "seti"
            | "sha"
            | "sub"
            | "thread"
            | "toolu"
    )
}

/// The parts of a run of letters, digits, `_`, `-`, `+` and `/` that may be tokens: what is between `+` and `/`.
pub(crate) fn token_pieces(text: &[u8], run: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let is_encoded = run.len() > MAX_RUN_BYTES;
    let mut start = if is_encoded { run.end } else { run.start };
    std::iter::from_fn(move || {
        while start < run.end {
            let piece = &text[start..run.end];
            let length = memchr::memchr2(b'+', b'/', piece).unwrap_or(piece.len());
            let mut range = start..start + length;
            start = range.end + 1;
            if length < MIN_PIECE_BYTES {
                continue;
            }
            // The letter of an escape such as `\n`.
            range.start += usize::from(range.start > 0 && text[range.start - 1] == b'\\');
            return Some(range);
        }
        None
    })
}

/// Whether a part of a text is a token of a service that no rule knows: `acme_live_9Zk...`.
pub(crate) fn is_unknown_token(text: &[u8], piece: &Range<usize>) -> bool {
    piece.len() > MIN_NAMED_BYTES + 2
        && (is_prefixed_token(&text[piece.clone()]) || follows_id(text, piece))
}

/// Whether an id and a mark are before random characters: `{hexadecimal id}:{key}`, `{number}|{key}`, `ab1.{key}`.
fn follows_id(text: &[u8], range: &Range<usize>) -> bool {
    let Some(mark) = range.start.checked_sub(1).map(|at| text[at]) else { return false };
    if !b":|.".contains(&mark) {
        return false;
    }
    let before = &text[range.start.saturating_sub(42)..range.start - 1];
    // The two halves of a key of Tableau.
    if mark == b':' && before.ends_with(b"==") {
        return range.len() >= MIN_UNNAMED_BYTES && is_random_body(&text[range.clone()], true);
    }
    let is_inner = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
    let id = &before[before.len() - before.iter().rev().take_while(is_inner).count()..];
    let body = &text[range.clone()];
    let is_key = || is_random_body(body, true) && changes_kind_often(body);
    match mark {
        b':' if (8..=10).contains(&id.len()) && id.iter().all(u8::is_ascii_digit) => {
            body.len() == 35 && is_key()
        }
        // `1/{number}:{key}` of Asana.
        b':' if (13..=20).contains(&id.len()) && id.iter().all(u8::is_ascii_digit) => {
            body.len() == 32 && is_hex_body(body)
        }
        b':' => matches!(id.len(), 24 | 36) && is_hex(id) && (is_key() || is_hex_body(body)),
        b'|' => (3..=20).contains(&id.len()) && id.iter().all(u8::is_ascii_digit) && is_key(),
        _ => {
            let is_label = (2..=6).contains(&id.len())
                && !id.contains(&b'-')
                && std::str::from_utf8(id).is_ok_and(|id| !is_public_part(id));
            let is_start =
                before.len() == id.len() || !before[..before.len() - id.len()].ends_with(b".");
            is_label && is_start && is_random_body(body, false)
        }
    }
}

/// Whether a text is a hexadecimal number or a UUID.
fn is_hex(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
}

fn is_prefixed_token(token: &[u8]) -> bool {
    let mut body = token;
    let (mut parts, mut has_key, mut has_service, mut has_secret) = (0, false, false, false);
    while let Some(part) = prefix_part(body, parts > 0).filter(|_| parts < 4) {
        let mut small = [0; MAX_PART_BYTES];
        let small = &mut small[..part.len()];
        small.copy_from_slice(part.as_bytes());
        small.make_ascii_lowercase();
        let Ok(small) = std::str::from_utf8(small) else { return false };
        if parts == 0 && is_public_part(plain_name(small)) {
            return false;
        }
        has_secret |= names_secret(small);
        has_key |= names_key(small);
        has_service |=
            parts == 0 && part.len() >= 3 && part.bytes().all(|byte| byte.is_ascii_alphabetic());
        body = &body[part.len() + 1..];
        parts += 1;
    }
    let is_random = (has_service || has_key) && is_random_body(body, has_key);
    token.len() <= MAX_TOKEN_BYTES && (is_random || has_secret && is_hex_body(body))
}

/// The part up to the first `_` or `-`, if it is short and of one case. Only inner parts are numbers.
fn prefix_part(body: &[u8], is_inner: bool) -> Option<&str> {
    let (mut small, mut capital, mut digits) = (0, 0, 0);
    for (at, byte) in body.iter().take(MAX_PART_BYTES + 1).enumerate() {
        match byte {
            b'a'..=b'z' => small += 1,
            b'A'..=b'Z' => capital += 1,
            b'0'..=b'9' => digits += 1,
            b'_' | b'-' if at > digits || at > 0 && is_inner => {
                return std::str::from_utf8(&body[..at]).ok();
            }
            _ => return None,
        }
        if small > 0 && capital > 0 || digits > 2 && !(is_inner && small + capital == 0) {
            return None;
        }
    }
    None
}

/// A part without the number at its end: `sha` of `sha256`.
fn plain_name(part: &str) -> &str {
    part.trim_end_matches(|last: char| last.is_ascii_digit())
}

/// Whether a body is a hexadecimal number of the length of keys, or a UUID.
fn is_hex_body(body: &[u8]) -> bool {
    let digits = body.iter().filter(|byte| byte.is_ascii_digit()).count();
    matches!(body.len(), 32 | 36 | 40 | 48 | 64)
        && digits >= 4
        && body.iter().all(|byte| byte.is_ascii_hexdigit() || body.len() == 36 && *byte == b'-')
}

fn is_random_body(body: &[u8], names_key: bool) -> bool {
    let least = if names_key { MIN_NAMED_BYTES } else { MIN_UNNAMED_BYTES };
    let digits = body.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = body.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let separators = body.iter().filter(|byte| b"_-".contains(byte)).count();
    let most_separators = if names_key { body.len() / 6 } else { 0 };
    if body.len() < least || digits < 1 || letters < 6 || separators > most_separators {
        return false;
    }
    let is_wordy = word_likeness(body).is_some_and(|likeness| likeness >= MAX_WORD_LIKENESS);
    (changes_kind_often(body) || body.len() >= MIN_UNNAMED_BYTES && has_two_kinds(body))
        && !is_wordy
        && has_many_bytes(body)
}

/// Whether letters of one case and digits take turns, and are no hexadecimal number.
fn has_two_kinds(body: &[u8]) -> bool {
    let digits = body.iter().filter(|byte| byte.is_ascii_digit()).count();
    let is_turn = |pair: &&[u8]| pair[0].is_ascii_digit() != pair[1].is_ascii_digit();
    let turns = body.windows(2).filter(is_turn).count();
    digits >= 4
        && digits * 3 <= body.len() * 2
        && turns * 4 >= body.len()
        && body.iter().all(u8::is_ascii_alphanumeric)
        && body.iter().any(|byte| byte.to_ascii_lowercase() > b'f')
}

/// Whether at least a third of the characters differ, as in no filler.
fn has_many_bytes(body: &[u8]) -> bool {
    let mut seen = [false; 256];
    body.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    let distinct = seen.iter().filter(|seen| **seen).count();
    distinct >= 12 || distinct * 3 >= body.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::MadeUpTexts;

    fn tokens_from(text: &str, start: usize) -> Vec<Range<usize>> {
        let pieces = token_pieces(text.as_bytes(), start..text.len());
        pieces.filter(|piece| is_unknown_token(text.as_bytes(), piece)).collect()
    }

    fn find(text: &str) -> Vec<Range<usize>> {
        tokens_from(text, 0)
    }

    #[test]
    fn random_characters_after_a_prefix_are_a_token() {
        for template in ["ion_{A42}", "acme_live_{A24}", "ACMEPAT_{A40}", "x9-pat-{A28}"] {
            for seed in 0..20 {
                let text = MadeUpTexts::new(seed).fill(template);
                assert!(!find(&text).is_empty(), "{text}");
            }
        }
        for template in ["{h24}:{h64}", "{u}:{h32}", "{d15}|{A27}", "na1.{A40}"] {
            for seed in 0..20 {
                let text = MadeUpTexts::new(seed).fill(template);
                let start = text.find([':', '|', '.']).unwrap() + 1;
                assert!(!tokens_from(&text, start).is_empty(), "{text}");
            }
        }
        let text = r"\nion_VNR17uGgdxr9P2aOrCulvSLTFDqijIV2ImQsOUhDEI";
        let found = tokens_from(text, 1);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0], 2..text.len());
    }

    #[test]
    fn ids_hashes_and_names_are_left() {
        for template in [
            "toolu_01{A22}",
            "msg_{h48}",
            "call_{A24}",
            "phc_{A43}",
            "sha512-{A86}",
            "commit-{h40}",
            "acme_live_{u}",
            "test_that_the_parser_reads_2_tokens_and_3_keys",
            "key-{h64}",
            "sha256:{h64}",
            "{u}:{d13}",
            "id|{h40}",
            "https://www.{A40}",
            "a-{l32}",
        ] {
            for seed in 0..20 {
                let text = MadeUpTexts::new(seed).fill(template);
                assert!(find(&text).is_empty(), "{text}");
            }
        }
    }
}
