//! The pictures of a session. An entry only has a picture's hash; the bytes are in the session files.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;

use steno_model::durable::FileError;
use steno_model::entry::Entry;
use steno_vault::SessionBundle;

/// Base64 prefixes of the supported image types.
const BASE64_PREFIXES: [(&str, &str); 4] = [
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
];

/// Pictures by the BLAKE3 hash of their bytes.
#[derive(Clone, Debug, Default)]
pub struct SessionPictures {
    by_hash: HashMap<String, EmbeddedPicture>,
}

/// The media type of bytes that are no image of a supported type.
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// The shortest base64 that may be a picture of no supported type, in characters.
const MIN_UNKNOWN_LENGTH: usize = 8;

/// One picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedPicture {
    /// The media type by the first bytes, whatever the session file says; `application/octet-stream` if they are no
    /// image of a supported type.
    pub media_type: &'static str,
    /// The bytes in base64.
    pub base64: String,
}

impl SessionPictures {
    /// Finds the pictures that the entries name in the session's bytes.
    pub fn find_in_bundle(bundle: &SessionBundle, entries: &[Entry]) -> Result<Self, FileError> {
        let mut pictures = Self::default();
        let mut missing = named_hashes(entries);
        if missing.is_empty() {
            return Ok(pictures);
        }
        for source in &bundle.files {
            pictures.scan_bytes(&source.read_bytes()?);
        }
        missing.retain(|hash| pictures.get(hash).is_none());
        if !missing.is_empty() {
            for source in &bundle.files {
                pictures.scan_for_unknown(&source.read_bytes()?, &missing);
            }
        }
        Ok(pictures)
    }

    /// The picture with this hash.
    pub fn get(&self, hash: &str) -> Option<&EmbeddedPicture> {
        self.by_hash.get(hash)
    }

    fn scan_bytes(&mut self, bytes: &[u8]) {
        for (beginning, media_type) in BASE64_PREFIXES {
            let mut from = 0;
            while let Some(found) = memmem::find(&bytes[from..], beginning.as_bytes()) {
                let begin = from + found;
                let end = begin + base64_length(&bytes[begin..]);
                from = end.max(begin + 1);
                // After another base64 character, this is the middle of other data.
                if begin == 0 || !is_base64(bytes[begin - 1]) {
                    self.add_base64(&bytes[begin..end], media_type);
                }
            }
        }
    }

    /// Finds the bytes with these hashes that are in base64, whatever they begin with.
    fn scan_for_unknown(&mut self, bytes: &[u8], hashes: &HashSet<&str>) {
        let mut from = 0;
        while from < bytes.len() {
            let length = base64_length(&bytes[from..]);
            if length >= MIN_UNKNOWN_LENGTH
                && let Some((hash, base64)) = decode_base64(&bytes[from..from + length])
                && hashes.contains(hash.as_str())
            {
                let media_type = UNKNOWN_TYPE;
                self.by_hash.insert(hash, EmbeddedPicture { media_type, base64 });
            }
            from += length + 1;
        }
    }

    fn add_base64(&mut self, text: &[u8], media_type: &'static str) {
        if let Some((hash, base64)) = decode_base64(text) {
            self.by_hash.insert(hash, EmbeddedPicture { media_type, base64 });
        }
    }
}

impl EmbeddedPicture {
    /// Whether the bytes are an image of a supported type.
    pub fn is_image(&self) -> bool {
        self.media_type != UNKNOWN_TYPE
    }
}

/// The hashes of all pictures that entries name.
fn named_hashes(entries: &[Entry]) -> HashSet<&str> {
    let segments = entries.iter().flat_map(|entry| split_pictures(&entry.content));
    let hash = |segment| match segment {
        TextSegment::Picture { hash, .. } => Some(hash),
        TextSegment::Text(_) => None,
    };
    segments.filter_map(hash).collect()
}

/// The hash of the bytes that base64 from JSON is of, and the base64 without escapes.
fn decode_base64(text: &[u8]) -> Option<(String, String)> {
    let base64: String =
        text.iter().filter(|byte| **byte != b'\\').map(|byte| char::from(*byte)).collect();
    let bytes = STANDARD.decode(&base64).ok()?;
    Some((blake3::hash(&bytes).to_string(), base64))
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
}

/// Length of the base64 at the start. JSON may escape each slash with a backslash.
fn base64_length(bytes: &[u8]) -> usize {
    let is_escape = |at: usize| bytes[at] == b'\\' && bytes.get(at + 1) == Some(&b'/');
    (0..bytes.len()).find(|at| !is_base64(bytes[*at]) && !is_escape(*at)).unwrap_or(bytes.len())
}

/// Part of a text that may name pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSegment<'a> {
    /// Text between pictures.
    Text(&'a str),
    /// A reference to a picture.
    Picture {
        /// The media type from the session file.
        media_type: &'a str,
        /// The BLAKE3 hash of its bytes.
        hash: &'a str,
    },
}

/// The text before the hash in a reference.
const HASH_LABEL: &str = " bytes, blake3 ";

/// A prepared search, because every text is scanned.
static HASH_LABEL_FINDER: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new(HASH_LABEL));

/// Maximum length of a reference before the hash.
const MAX_LABEL_BYTES: usize = 64;

/// Splits a text into picture references and the text between them. Blank text is dropped.
pub fn split_pictures(mut text: &str) -> Vec<TextSegment<'_>> {
    let mut pieces = Vec::new();
    while let Some((before, picture, after)) = first_picture(text) {
        pieces.extend([TextSegment::Text(before), picture]);
        text = after;
    }
    pieces.push(TextSegment::Text(text));
    pieces.retain(|piece| !matches!(piece, TextSegment::Text(text) if text.trim().is_empty()));
    pieces
}

/// Whether a text has a picture reference.
pub fn names_picture(text: &str) -> bool {
    first_picture(text).is_some()
}

/// The first picture reference, with the text before and after it.
fn first_picture(text: &str) -> Option<(&str, TextSegment<'_>, &str)> {
    HASH_LABEL_FINDER.find_iter(text.as_bytes()).find_map(|at| {
        let (head, tail) = (&text[..at], &text[at + HASH_LABEL.len()..]);
        let (sum, rest) = tail.split_at_checked(64).filter(|(_, rest)| rest.starts_with(']'))?;
        let near = &head.as_bytes()[at.saturating_sub(MAX_LABEL_BYTES)..];
        let begin = at - near.len() + near.iter().rposition(|byte| *byte == b'[')?;
        let media_type =
            head[begin + 1..].split(',').next().filter(|name| name.starts_with("image/"))?;
        let is_sum = sum.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_sum.then_some((
            &text[..begin],
            TextSegment::Picture { media_type, hash: sum },
            &rest[1..],
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use steno_agents::decoding::attachment;
    use steno_model::entry::{EntryKind, Role};
    use steno_vault::SessionFile;

    #[test]
    fn a_picture_is_found_by_its_sum() {
        let base64 = "iVBORw0KGgo//w==";
        let content =
            format!("see {} there", attachment::describe_base64(Some("image/png"), base64));
        let pieces = split_pictures(&content);
        let [
            TextSegment::Text("see "),
            TextSegment::Picture { media_type, hash: sum },
            TextSegment::Text(" there"),
        ] = pieces[..]
        else {
            panic!("{pieces:?}")
        };
        assert_eq!(media_type, "image/png");
        let kept = br#"{"data":"iVBORw0KGgo\/\/w==","not":"xiVBORw0KGgo//w=="}"#.to_vec();
        let bundle = SessionBundle::new("/x", vec![SessionFile::in_memory("a", "/x/a", kept)]);
        let entry = Entry::new(Role::User, EntryKind::Text, content.clone());
        let pictures = SessionPictures::find_in_bundle(&bundle, &[entry]).unwrap();
        let picture = EmbeddedPicture { media_type: "image/png", base64: base64.to_owned() };
        assert_eq!(pictures.get(sum), Some(&picture));
        assert_eq!(pictures.by_hash.len(), 1);
    }

    #[test]
    fn bytes_that_are_no_image_are_found_too() {
        let base64 = "mOm5DjH2rDYpcxYaPjfzC38bQEzr6MVT";
        let content = attachment::describe_base64(Some("image/png"), base64);
        let kept = format!(r#"{{"data":"{base64}"}}"#).into_bytes();
        let bundle = SessionBundle::new("/x", vec![SessionFile::in_memory("a", "/x/a", kept)]);
        let hash = blake3::hash(&STANDARD.decode(base64).unwrap()).to_string();
        let entry = Entry::new(Role::User, EntryKind::Text, content);
        let pictures = SessionPictures::find_in_bundle(&bundle, &[entry]).unwrap();
        let picture = pictures.get(&hash).expect("the bytes are there");
        assert_eq!((picture.is_image(), picture.base64.as_str()), (false, base64));
        assert_eq!(pictures.by_hash.len(), 1, "other base64 is not kept");
    }

    #[test]
    fn a_text_may_name_many() {
        let one = attachment::describe_base64(Some("image/png"), "iVBORw0KGgo=");
        assert_eq!(split_pictures(&format!("{one}\n").repeat(20_000)).len(), 20_000);
    }

    #[test]
    fn other_text_names_no_picture() {
        for text in ["", "[image/png, 5 bytes, blake3 00]", "[text/plain, 5 bytes, blake3 ]"] {
            assert!(!names_picture(text), "{text}");
        }
    }
}
