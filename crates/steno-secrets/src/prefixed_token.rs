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

/// The fewest random characters after a prefix that speaks of keys.
const MIN_NAMED_BYTES: usize = 20;

/// Longer tokens are encoded data.
const MAX_TOKEN_BYTES: usize = 240;

/// Parts of prefixes of keys: `acme_live_...`, `acme-pat-...`.
const KEY_PARTS: [&str; 28] = [
    "access", "admin", "api", "apikey", "at", "auth", "deploy", "key", "live", "oat", "pat", "prd",
    "priv", "private", "prod", "refresh", "rt", "sandbox", "sec", "secret", "sk", "svc", "test",
    "tkn", "tok", "token", "uat", "whsec",
];

/// Prefixes of what services make public: hashes, ids, names of files.
const PUBLIC_PARTS: [&str; 43] = [
    "acct",
    "asst",
    "batch",
    "blake",
    "build",
    "bundle",
    "call",
    "chatcmpl",
    "chunk",
    "commit",
    "cs",
    "css",
    "cus",
    "digest",
    "etag",
    "evt",
    "file",
    "gen",
    "hash",
    "img",
    "index",
    "integrity",
    "main",
    "md",
    "msg",
    "nonce",
    "org",
    "phc",
    "pi",
    "pk",
    "price",
    "proj",
    "pub",
    "public",
    "req",
    "resp",
    "run",
    "session",
    "seti",
    "sha",
    "sub",
    "thread",
    "toolu",
];

/// The token in a run of letters, digits, `_`, `-`, `+` and `/`, if there is one: `acme_live_9Zk...`.
pub(crate) fn find_prefixed_tokens(text: &[u8], run: Range<usize>) -> Vec<Range<usize>> {
    let mut tokens = Vec::new();
    if run.len() > MAX_RUN_BYTES {
        return tokens;
    }
    let mut start = run.start;
    for piece in text[run].split(|byte| b"+/".contains(byte)) {
        let mut range = start..start + piece.len();
        start = range.end + 1;
        // The letter of an escape such as `\n`.
        if range.start > 0 && text[range.start - 1] == b'\\' {
            range.start += 1;
        }
        if is_prefixed_token(&text[range.start.min(range.end)..range.end]) {
            tokens.push(range);
        }
    }
    tokens
}

fn is_prefixed_token(token: &[u8]) -> bool {
    if !(MIN_NAMED_BYTES + 3..=MAX_TOKEN_BYTES).contains(&token.len()) {
        return false;
    }
    let is_separator = |byte: &u8| b"_-".contains(byte);
    let mut body = token;
    let (mut parts, mut names_key, mut names_service) = (0, false, false);
    while let Some(length) = body.iter().position(is_separator).filter(|_| parts < 4) {
        let part = &body[..length];
        let names_public =
            std::str::from_utf8(part).is_ok_and(|it| PUBLIC_PARTS.contains(&plain_name(it)));
        if !is_prefix_part(part) || parts == 0 && names_public {
            break;
        }
        names_key |= std::str::from_utf8(part)
            .is_ok_and(|it| KEY_PARTS.contains(&it.to_ascii_lowercase().as_str()));
        names_service |= parts == 0 && length >= 3 && part.iter().all(u8::is_ascii_alphabetic);
        body = &body[length + 1..];
        parts += 1;
    }
    (names_service || names_key) && is_random_body(body, names_key)
}

/// A part without the number at its end: `sha` of `sha256`.
fn plain_name(part: &str) -> &str {
    part.trim_end_matches(|last: char| last.is_ascii_digit())
}

/// Whether a part of a prefix is short and of one case.
fn is_prefix_part(part: &[u8]) -> bool {
    let is_small = part.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_capital = part.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let digits = part.iter().filter(|byte| byte.is_ascii_digit()).count();
    (1..=10).contains(&part.len())
        && (is_small || is_capital)
        && digits <= 2
        && (digits < part.len() || part.len() <= 2)
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
    changes_kind_often(body) && !is_wordy && has_many_bytes(body)
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

    fn find(template: &str) -> bool {
        (0..20).all(|seed| {
            let text = MadeUpTexts::new(seed).fill(template);
            !find_prefixed_tokens(text.as_bytes(), 0..text.len()).is_empty()
        })
    }

    #[test]
    fn random_characters_after_a_prefix_are_a_token() {
        for template in ["ion_{A42}", "acme_live_{A24}", "ACMEPAT_{A40}", "x9-pat-{A28}"] {
            for seed in 0..20 {
                let text = MadeUpTexts::new(seed).fill(template);
                assert!(!find_prefixed_tokens(text.as_bytes(), 0..text.len()).is_empty(), "{text}");
            }
        }
        let text = br"a\nion_VNR17uGgdxr9P2aOrCulvSLTFDqijIV2ImQsOUhDEI";
        assert_eq!(find_prefixed_tokens(text, 2..text.len()), [3..text.len()]);
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
            "a-{l32}",
        ] {
            for seed in 0..20 {
                let text = MadeUpTexts::new(seed).fill(template);
                assert!(find_prefixed_tokens(text.as_bytes(), 0..text.len()).is_empty(), "{text}");
            }
        }
    }
}
