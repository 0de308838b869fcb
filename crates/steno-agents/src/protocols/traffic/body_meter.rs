//! Counts and hashes a body as it streams, and limits how much of it is kept.

use blake3::Hasher;
use memchr::memmem;

use super::body_format::BodyFormat;

/// Measures one body.
#[derive(Clone, Debug)]
pub struct BodyMeter {
    kept_limit: u64,
    length: u64,
    hasher: Hasher,
    content: Option<ContentHasher>,
}

/// Length and hash of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredBody {
    /// Length in bytes.
    pub length: u64,
    /// Bytes at the end that were not kept.
    pub omitted: u64,
    /// BLAKE3 hash, in hexadecimal.
    pub blake3: String,
    /// BLAKE3 hash without the multipart boundaries, which differ in each request.
    pub content_blake3: Option<String>,
}

impl BodyMeter {
    /// Measures a body and keeps its first `limit` bytes.
    pub fn new(limit: u64, fields: &BodyFormat) -> Self {
        let content = match fields {
            BodyFormat::Multipart(boundary) => Some(ContentHasher::new(boundary)),
            _ => None,
        };
        Self { kept_limit: limit, length: 0, hasher: Hasher::new(), content }
    }

    /// Adds bytes, and returns those to keep.
    pub fn update<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        self.hasher.update(bytes);
        if let Some(content) = &mut self.content {
            content.update(bytes);
        }
        let room =
            usize::try_from(self.kept_limit.saturating_sub(self.length)).unwrap_or(usize::MAX);
        self.length += bytes.len() as u64;
        &bytes[..bytes.len().min(room)]
    }

    /// The measurements. Call it at the end of the body.
    pub fn finish(self) -> MeasuredBody {
        MeasuredBody {
            length: self.length,
            omitted: self.length.saturating_sub(self.kept_limit),
            blake3: self.hasher.finalize().to_hex().to_string(),
            content_blake3: self.content.map(ContentHasher::finish),
        }
    }

    /// Measures a whole body.
    pub fn measure_body(fields: &BodyFormat, body: &[u8]) -> MeasuredBody {
        let mut meter = Self::new(u64::MAX, fields);
        meter.update(body);
        meter.finish()
    }
}

/// Hashes a multipart body without its boundaries.
#[derive(Clone, Debug)]
struct ContentHasher {
    boundary: Vec<u8>,
    /// Bytes that may be the prefix of a boundary.
    held: Vec<u8>,
    hasher: Hasher,
}

impl ContentHasher {
    fn new(boundary: &str) -> Self {
        Self { boundary: boundary.as_bytes().to_vec(), held: Vec::new(), hasher: Hasher::new() }
    }

    fn update(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        let mut at = 0;
        for found in memmem::find_iter(&self.held, &self.boundary) {
            self.hasher.update(&self.held[at..found]);
            at = found + self.boundary.len();
        }
        let tail = self.held.len().saturating_sub(self.boundary.len() - 1).max(at);
        self.hasher.update(&self.held[at..tail]);
        self.held.drain(..tail);
    }

    fn finish(mut self) -> String {
        self.hasher.update(&self.held);
        self.hasher.finalize().to_hex().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_measured_and_kept_up_to_the_limit() {
        let mut meter = BodyMeter::new(5, &BodyFormat::Json);
        assert_eq!(
            [meter.update(b"abc"), meter.update(b"def"), meter.update(b"g")],
            [&b"abc"[..], b"de", b""]
        );
        let measured = meter.finish();
        assert_eq!((measured.length, measured.omitted), (7, 2));
        assert_eq!(measured.blake3, blake3::hash(b"abcdefg").to_hex().as_str());
    }

    #[test]
    fn boundaries_do_not_change_the_content() {
        let body = |boundary: &str| format!("--{boundary}\r\na\r\n--{boundary}--").into_bytes();
        let whole = blake3::hash(b"--\r\na\r\n----").to_hex().to_string();
        for boundary in ["b", "aaab", "a-much-longer-one"] {
            let body = body(boundary);
            for cut in 0..=body.len() {
                let mut meter = BodyMeter::new(0, &BodyFormat::Multipart(boundary.to_owned()));
                meter.update(&body[..cut]);
                meter.update(&body[cut..]);
                let measured = meter.finish();
                assert_eq!(measured.content_blake3.as_ref(), Some(&whole), "{boundary} at {cut}");
            }
        }
    }
}
