//! Finds the secrets in a header with cookies.

use std::ops::Range;

use crate::randomness::looks_random;
use crate::value_shapes::is_filler;

/// The secret values of the `name=value` pairs at an offset. Attributes such as `Path=/` are not secrets.
pub(crate) fn find_cookie_values(text: &[u8], at: usize) -> Vec<Range<usize>> {
    let start = at + text[at..].iter().take(4).take_while(|byte| b" \"'\\".contains(byte)).count();
    let line =
        text[start..].iter().take(4096).take_while(|byte| !b"\n\"'\\".contains(byte)).count();
    let mut values = Vec::new();
    let mut pair_start = start;
    for pair in text[start..start + line].split(|byte| *byte == b';') {
        if let Some(equals) = pair.iter().position(|byte| *byte == b'=') {
            let (name, value) = (pair[..equals].trim_ascii(), &pair[equals + 1..]);
            let value_start = pair_start + equals + 1;
            if is_secret_cookie(name, value) {
                values.push(value_start..value_start + value.trim_ascii_end().len());
            }
        }
        pair_start += pair.len() + 1;
    }
    values
}

fn is_secret_cookie(name: &[u8], value: &[u8]) -> bool {
    const ATTRIBUTES: [&str; 6] = ["path", "domain", "expires", "max-age", "samesite", "priority"];
    let (Ok(name), Ok(value)) = (std::str::from_utf8(name), std::str::from_utf8(value)) else {
        return false;
    };
    let lower = name.to_ascii_lowercase();
    let is_counter =
        ["_ga", "_gid", "_fbp", "_gcl", "utm"].iter().any(|start| lower.starts_with(start));
    if is_counter {
        return false;
    }
    let is_named = ["sess", "sid", "auth", "token", "csrf"].iter().any(|part| lower.contains(part));
    !ATTRIBUTES.contains(&lower.as_str())
        && !is_filler(value.trim())
        && !value.contains(['$', '{', '<'])
        && (looks_random(value.trim())
            || is_named && value.trim().len() >= 6 && value.bytes().any(|b| b.is_ascii_digit()))
}
