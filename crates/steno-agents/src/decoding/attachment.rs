//! Describes images and other binary content by type, size and hash. Transcripts contain the description, not the
//! bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Describes base64 data as `[image/png, 12345 bytes, blake3 HEX]`.
pub fn describe_base64(media_type: Option<&str>, base64: &str) -> String {
    let media_type = media_type.unwrap_or("data");
    match STANDARD.decode(base64.trim_end()) {
        Ok(bytes) => {
            format!("[{media_type}, {} bytes, blake3 {}]", bytes.len(), blake3::hash(&bytes))
        }
        Err(_) => format!("[{media_type}, {} characters that are not base64]", base64.len()),
    }
}

/// Describes a URL. A `data:` URL contains its bytes and is described by their hash.
pub fn describe_url(media_type: &str, url: &str) -> String {
    let Some((head, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(',')) else {
        return format!("[{media_type}, {url}]");
    };
    let data_type =
        head.split(';').next().filter(|data_type| !data_type.is_empty()).unwrap_or(media_type);
    if head.ends_with(";base64") {
        return describe_base64(Some(data_type), data);
    }
    format!("[{data_type}, {} bytes, blake3 {}]", data.len(), blake3::hash(data.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_named_by_its_sum() {
        let words = format!("[image/png, 5 bytes, blake3 {}]", blake3::hash(b"hello"));
        assert_eq!(describe_base64(Some("image/png"), "aGVsbG8="), words);
        assert_eq!(describe_url("", "data:image/png;base64,aGVsbG8="), words);
        assert_eq!(describe_url("image/png", "data:,hello"), words);
        assert_eq!(
            describe_base64(Some("image/png"), "%%"),
            "[image/png, 2 characters that are not base64]"
        );
    }

    #[test]
    fn keeps_other_urls() {
        assert_eq!(describe_url("text/plain", "file:///a"), "[text/plain, file:///a]");
        assert_eq!(describe_url("x/y", "data:"), "[x/y, data:]");
    }
}
