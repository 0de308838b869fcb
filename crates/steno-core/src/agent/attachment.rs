//! What a URL in a message points to, told in words.

use crate::agent::record::media;

/// What a URL points to; a `data:` URL holds its bytes itself, and only their sum is told.
pub(crate) fn url(mime: &str, url: &str) -> String {
    let Some((head, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(',')) else {
        return format!("[{mime}, {url}]");
    };
    let stated = head.split(';').next().filter(|stated| !stated.is_empty()).unwrap_or(mime);
    if head.ends_with(";base64") {
        return media(Some(stated), data);
    }
    format!("[{stated}, {} bytes, blake3 {}]", data.len(), blake3::hash(data.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_named_by_its_sum() {
        let words = format!("[image/png, 5 bytes, blake3 {}]", blake3::hash(b"hello"));
        assert_eq!(url("", "data:image/png;base64,aGVsbG8="), words);
        assert_eq!(url("image/png", "data:,hello"), words);
    }

    #[test]
    fn other_urls_stand_for_themselves() {
        assert_eq!(url("text/plain", "file:///a"), "[text/plain, file:///a]");
        assert_eq!(url("x/y", "data:"), "[x/y, data:]");
    }
}
