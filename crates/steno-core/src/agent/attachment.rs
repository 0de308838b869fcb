//! Images and other binary content, told in words: what it is, how long, and the sum of its bytes.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Bytes of a kind, as text: `[image/png, 12345 bytes, blake3 …]`.
pub(crate) fn bytes(mime: &str, bytes: &[u8]) -> String {
    format!("[{mime}, {} bytes, blake3 {}]", bytes.len(), blake3::hash(bytes).to_hex())
}

/// Bytes written as base64; what is not base64 stands for itself.
pub(crate) fn base64(mime: &str, text: &str) -> String {
    match LENIENT.decode(text) {
        Ok(decoded) => bytes(mime, &decoded),
        Err(_) => bytes(mime, text.as_bytes()),
    }
}

/// What a URL points to; a `data:` URL holds its bytes itself.
pub(crate) fn url(mime: &str, url: &str) -> String {
    let Some((head, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(',')) else {
        return format!("[{mime}, {url}]");
    };
    let stated = head.split(';').next().filter(|stated| !stated.is_empty()).unwrap_or(mime);
    if head.ends_with(";base64") { base64(stated, data) } else { bytes(stated, data.as_bytes()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_named_by_its_sum() {
        let sum = blake3::hash(b"hello").to_hex();
        let words = format!("[image/png, 5 bytes, blake3 {sum}]");
        assert_eq!(base64("image/png", "aGVsbG8="), words);
        assert_eq!(base64("image/png", "aGVsbG8"), words);
        assert_eq!(url("", "data:image/png;base64,aGVsbG8="), words);
        assert_eq!(url("text/plain", "file:///a"), "[text/plain, file:///a]");
    }

    #[test]
    fn what_is_not_base64_is_still_named() {
        assert!(base64("image/png", "%%%").starts_with("[image/png, 3 bytes"));
        assert!(url("x/y", "data:,é").starts_with("[x/y, 2 bytes"));
        assert_eq!(url("x/y", "data:"), "[x/y, data:]");
    }
}
