//! Lossless storage of non-UTF-8 paths.

use std::path::{Path, PathBuf};

/// Encodes the bytes of a path in hexadecimal; `None` if the path is UTF-8.
pub(super) fn encode_path_bytes(path: &Path) -> Option<String> {
    let is_text = path.to_str().is_some();
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    (!is_text && cfg!(unix)).then(|| bytes.map(|byte| format!("{byte:02x}")).collect())
}

/// Decodes a path from hexadecimal bytes, or uses `text` if there are none or they are invalid.
pub(super) fn decode_path_bytes(bytes: Option<&str>, text: &str) -> PathBuf {
    bytes.and_then(decode_hex_path).unwrap_or_else(|| PathBuf::from(text))
}

#[cfg(unix)]
fn decode_hex_path(hexadecimal: &str) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let digits = hexadecimal.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    let bytes = digits.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect::<Option<_>>()?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

#[cfg(not(unix))]
fn decode_hex_path(_: &str) -> Option<PathBuf> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn no_byte_is_lost() {
        let path = Path::new(OsStr::from_bytes(b"/a/\xff\xfe b"));
        let bytes = encode_path_bytes(path).unwrap();
        assert_eq!(bytes, "2f612ffffe2062");
        assert_eq!(decode_path_bytes(Some(&bytes), "text"), path);
        assert_eq!(encode_path_bytes(Path::new("/ä")), None);
        assert_eq!(decode_path_bytes(Some("zz"), "text"), Path::new("text"));
    }
}
