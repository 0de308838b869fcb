//! Finds the values of a Kubernetes `Secret`: all that is under `data` and `stringData`, whatever its key is.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;
use regex::bytes::Regex;

use crate::value_shapes::is_filler;

/// What says that a manifest is one of a secret.
pub(crate) const MANIFEST_HINTS: [&str; 4] =
    ["kind: Secret", "kind: \"Secret\"", "\"kind\": \"Secret\"", "\"kind\":\"Secret\""];

/// How many bytes before and after its kind belong to a manifest.
const MAX_MANIFEST_BYTES: usize = 16 << 10;

/// The start of the block of values. Line breaks may be escaped, as in JSON.
static BLOCK_START: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?-u)(?:^|\n|\\n)([ \t]{0,20})(?:data|stringData):[ \t\r]*(?:\n|\\n)"#)
        .expect("a valid pattern")
});

/// A line of the block: its indentation, its key, and its value.
static BLOCK_LINE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?-u)^([ \t]+)(?:["']?[A-Za-z0-9._-]{1,100}["']?:[ \t]*)?["']?([^\s"'\\]*)[^\n\\]*(?:\n|\\n|$)"#,
    )
    .expect("a valid pattern")
});

/// The values in a manifest that is written as JSON.
static JSON_BLOCK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?-u)"(?:data|stringData)"\s{0,4}:\s{0,4}\{([^{}]{1,8000})\}"#)
        .expect("a valid pattern")
});

static JSON_VALUE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?-u):\s{0,4}"([^"\n]{1,4000})""#).expect("a valid pattern"));

/// The values of the manifest whose kind is at `hint`.
pub(crate) fn find_manifest_values(text: &[u8], hint: Range<usize>) -> Vec<Range<usize>> {
    // `SecretList` and `SecretStore` are other kinds.
    if text.get(hint.end).is_some_and(u8::is_ascii_alphanumeric) {
        return Vec::new();
    }
    let manifest = manifest_range(text, hint);
    let part = &text[manifest.clone()];
    let mut values = Vec::new();
    for block in BLOCK_START.captures_iter(part) {
        let (Some(whole), Some(indent)) = (block.get(0), block.get(1)) else { continue };
        read_block(part, whole.end(), indent.len(), &mut values);
    }
    for block in JSON_BLOCK.captures_iter(part).filter_map(|captures| captures.get(1)) {
        let found = JSON_VALUE.captures_iter(block.as_bytes());
        values.extend(
            found
                .filter_map(|captures| captures.get(1))
                .map(|value| block.start() + value.start()..block.start() + value.end()),
        );
    }
    values.retain(|value| is_value(&part[value.clone()]));
    values
        .into_iter()
        .map(|value| manifest.start + value.start..manifest.start + value.end)
        .collect()
}

/// The document that contains the hint: documents are divided by `---`.
fn manifest_range(text: &[u8], hint: Range<usize>) -> Range<usize> {
    let first = hint.start.saturating_sub(MAX_MANIFEST_BYTES);
    let last = text.len().min(hint.end + MAX_MANIFEST_BYTES);
    let start =
        memmem::rfind(&text[first..hint.start], b"\n---").map_or(first, |at| first + at + 4);
    let end = memmem::find(&text[hint.end..last], b"\n---").map_or(last, |at| hint.end + at);
    start..end
}

fn read_block(part: &[u8], mut at: usize, indent: usize, values: &mut Vec<Range<usize>>) {
    while let Some(line) = BLOCK_LINE.captures(&part[at..]) {
        let (Some(whole), Some(inner), Some(value)) = (line.get(0), line.get(1), line.get(2))
        else {
            return;
        };
        if inner.len() <= indent || whole.is_empty() {
            return;
        }
        values.push(at + value.start()..at + value.end());
        at += whole.end();
    }
}

/// Whether a value is none of a template, a filler or the mark of a block.
fn is_value(value: &[u8]) -> bool {
    let Ok(value) = std::str::from_utf8(value) else { return false };
    value.len() >= 4
        && !value.contains(['{', '<', '$'])
        && !value.starts_with('#')
        && !is_filler(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> Vec<&str> {
        let hint = MANIFEST_HINTS.iter().find_map(|hint| Some((text.find(hint)?, hint.len())));
        let (start, length) = hint.unwrap();
        let values = find_manifest_values(text.as_bytes(), start..start + length);
        values.into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn all_values_of_a_secret_are_found() {
        let text = "apiVersion: v1\nkind: Secret\ndata:\n  config: c3dvcmRmaXNo\n  other: \"aHVudGVyMg==\"\ntype: Opaque\n---\ndata:\n  k: not-this-one\n";
        assert_eq!(find(text), ["c3dvcmRmaXNo", "aHVudGVyMg=="]);
        let text = "stringData:\n  app.conf: |\n    swordfish\nkind: Secret\n";
        assert_eq!(find(text), ["swordfish"]);
        let text = r"kind: Secret\nstringData:\n  pw: swordfish\n  b: kestrel7\nx: y";
        assert_eq!(find(text), ["swordfish", "kestrel7"]);
        let text = r#"{"kind":"Secret","data":{"a":"c3dvcmRmaXNo"}}"#;
        assert_eq!(find(text), ["c3dvcmRmaXNo"]);
    }

    #[test]
    fn other_kinds_and_templates_are_left() {
        assert!(find("kind: SecretStore\ndata:\n  a: c3dvcmRmaXNo\n").is_empty());
        assert!(find("kind: Secret\ndata:\n  a: {{ .Values.a }}\n  b: ${B}\n").is_empty());
    }
}
