//! What stands in a transcript in place of pictures and other bytes: their type, size and sum, never the bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The bytes that `encoded` holds, in words: `[image/png, 12345 bytes, blake3 HEX]`.
pub(crate) fn describe(media_type: &str, encoded: &str) -> String {
    match STANDARD.decode(encoded.trim_end()) {
        Ok(bytes) => {
            format!("[{media_type}, {} bytes, blake3 {}]", bytes.len(), blake3::hash(&bytes))
        }
        Err(_) => format!("[{media_type}, {} characters]", encoded.len()),
    }
}

/// The same for a `data:` URL; another URL stands as it is.
pub(crate) fn describe_url(kind: &str, url: &str) -> String {
    let Some(rest) = url.strip_prefix("data:") else {
        return format!("[{kind}, {url}]");
    };
    match rest.split_once(";base64,") {
        Some((media_type, encoded)) => describe(media_type, encoded),
        None => format!("[{kind}, {} characters]", url.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_a_few_words() {
        let sum = blake3::hash(b"foo").to_string();
        let words = format!("[image/png, 3 bytes, blake3 {sum}]");
        assert_eq!(describe("image/png", "Zm9v"), words);
        assert_eq!(describe_url("image", "data:image/png;base64,Zm9v"), words);
        assert_eq!(
            describe_url("image", "https://example.org/a.png"),
            "[image, https://example.org/a.png]"
        );
        assert_eq!(describe("image/png", "%%"), "[image/png, 2 characters]");
    }
}
