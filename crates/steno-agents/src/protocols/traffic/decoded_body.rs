//! Decompresses bodies up to a size limit, because a few compressed bytes may expand to gigabytes.

use std::borrow::Cow;
use std::io::Read;

use super::piece::HttpHeaders;

/// Limit for decoding a request, both as recorded and decompressed. The recording keeps all bytes.
pub(super) const MAX_REQUEST_BYTES: usize = 32 << 20;

/// Limit for decoding a response. It is lower because assembly makes several copies.
pub(super) const MAX_RESPONSE_BYTES: usize = 16 << 20;

/// Up to this size the output buffer grows; beyond it, the buffer gets its final size at once.
const SMALL_BODY_BYTES: usize = 1 << 20;

/// The largest zstd window that HTTP allows (RFC 9659), as a power of two. The decoder allocates a buffer of that size.
pub(super) const ZSTD_WINDOW_LOG: u32 = 23;

/// A decompressed body, up to the limit.
#[derive(Debug)]
pub(super) struct DecodedBody<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// Whether the body is longer than the limit.
    pub(super) is_too_large: bool,
}

impl<'a> DecodedBody<'a> {
    /// Decompresses `bytes` by their `content-encoding`, up to `limit` bytes. A truncated stream gives the bytes before
    /// the cut.
    pub(super) fn new(headers: &HttpHeaders, bytes: &'a [u8], limit: usize) -> Self {
        let named = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("content-encoding");
        let coding = headers.iter().find(named).map(|(_, value)| value.to_ascii_lowercase());
        let decoded = match coding.as_deref().map(str::trim) {
            Some("gzip" | "x-gzip") => {
                read_limited(flate2::read::MultiGzDecoder::new(bytes), limit)
            }
            Some("deflate") => read_limited(flate2::read::ZlibDecoder::new(bytes), limit),
            Some("br") => read_limited(brotli_decompressor::Decompressor::new(bytes, 4096), limit),
            Some("zstd") => {
                let decoder = zstd_decoder(bytes);
                decoder.map(|decoder| read_limited(decoder, limit)).unwrap_or_default()
            }
            _ => {
                let is_too_large = bytes.len() > limit;
                let bytes = Cow::Borrowed(&bytes[..bytes.len().min(limit)]);
                return Self { bytes, is_too_large };
            }
        };
        let is_too_large = decoded.len() > limit;
        let mut decoded = decoded;
        decoded.truncate(limit);
        Self { bytes: Cow::Owned(decoded), is_too_large }
    }
}

/// The error for a body over `limit`. `what` is `request` or `response`.
pub(super) fn too_large_message(what: &str, limit: usize) -> String {
    let limit = limit >> 20;
    format!("the {what} is larger than {limit} MiB; it is recorded, but the rest is not decoded")
}

fn zstd_decoder(bytes: &[u8]) -> Option<impl Read> {
    let mut decoder = zstd::Decoder::with_buffer(bytes).ok()?;
    decoder.window_log_max(ZSTD_WINDOW_LOG).ok()?;
    Some(decoder)
}

/// Reads one byte over the limit, so that the caller can see that there is more.
fn read_limited(input: impl Read, limit: usize) -> Vec<u8> {
    let (mut input, mut out) = (input.take(limit as u64 + 1), Vec::new());
    let _ = input.by_ref().take(SMALL_BODY_BYTES as u64).read_to_end(&mut out);
    if out.len() == SMALL_BODY_BYTES {
        out.reserve_exact(limit + 1 - SMALL_BODY_BYTES);
        let _ = input.read_to_end(&mut out);
    }
    out
}
