//! Bodies of requests and answers, decompressed within a limit: a few bytes may stand for gigabytes.

use std::borrow::Cow;
use std::io::Read;

use super::piece::Headers;

/// The most bytes of a request that are read, both as recorded and decompressed. The record holds all of them.
pub(super) const REQUEST_LIMIT: usize = 32 << 20;

/// The same for an answer, of which several copies are made while it is put together.
pub(super) const ANSWER_LIMIT: usize = 16 << 20;

/// Bodies up to this size are unpacked into a buffer that grows; for others it has its final size at once.
const SMALL_BODY: usize = 1 << 20;

/// The largest window of zstd, as a power of two, that HTTP allows (RFC 9659). More would cost its size in memory.
pub(super) const ZSTD_WINDOW: u32 = 23;

/// A body as it was before it was compressed, as far as it goes.
#[derive(Debug)]
pub(super) struct DecodedBody<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// Whether it is longer than the limit.
    pub(super) is_too_large: bool,
}

impl<'a> DecodedBody<'a> {
    /// Decodes `bytes` as their headers say, up to `limit`. A stream that was cut gives what it held up to there.
    pub(super) fn new(headers: &Headers, bytes: &'a [u8], limit: usize) -> Self {
        let named = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("content-encoding");
        let coding = headers.iter().find(named).map(|(_, value)| value.to_ascii_lowercase());
        let decoded = match coding.as_deref().map(str::trim) {
            Some("gzip" | "x-gzip") => read_some(flate2::read::MultiGzDecoder::new(bytes), limit),
            Some("deflate") => read_some(flate2::read::ZlibDecoder::new(bytes), limit),
            Some("br") => read_some(brotli_decompressor::Decompressor::new(bytes, 4096), limit),
            Some("zstd") => {
                let decoder = zstd_decoder(bytes);
                decoder.map(|decoder| read_some(decoder, limit)).unwrap_or_default()
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

/// What readers are told of a body that is larger than `limit`; `what` is whose it is.
pub(super) fn too_large(what: &str, limit: usize) -> String {
    let limit = limit >> 20;
    format!("the {what} is larger than {limit} MiB; it is recorded, but the rest is not read")
}

fn zstd_decoder(bytes: &[u8]) -> Option<impl Read> {
    let mut decoder = zstd::Decoder::with_buffer(bytes).ok()?;
    decoder.window_log_max(ZSTD_WINDOW).ok()?;
    Some(decoder)
}

/// One byte more than the limit tells whether there is more.
fn read_some(input: impl Read, limit: usize) -> Vec<u8> {
    let (mut input, mut out) = (input.take(limit as u64 + 1), Vec::new());
    let _ = input.by_ref().take(SMALL_BODY as u64).read_to_end(&mut out);
    if out.len() == SMALL_BODY {
        out.reserve_exact(limit + 1 - SMALL_BODY);
        let _ = input.read_to_end(&mut out);
    }
    out
}
