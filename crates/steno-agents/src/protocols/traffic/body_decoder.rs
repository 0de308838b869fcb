//! Decompresses a body as it streams, so that secrets can be removed before it is recorded.

use std::io::{self, Write};

use super::decoded_body::ZSTD_WINDOW_LOG;

/// Limit for the recorded bytes of a decompressed body.
pub const MAX_DECODED_BYTES: usize = 128 << 20;

/// Compressed bytes decoded in one step.
const DECODE_STEP_BYTES: usize = 4 << 10;

/// Limit for the output of one step. Only a decompression bomb exceeds it.
const MAX_STEP_OUTPUT_BYTES: usize = 16 << 20;

/// Decompresses one body by its `content-encoding`.
pub struct BodyDecoder {
    stream: DecoderStream,
    decoded_bytes: usize,
}

enum DecoderStream {
    Gzip(Box<flate2::write::MultiGzDecoder<DecodedBytes>>),
    Deflate(Box<flate2::write::ZlibDecoder<DecodedBytes>>),
    Brotli(Box<brotli_decompressor::DecompressorWriter<DecodedBytes>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, DecodedBytes>>),
}

/// Buffer for decompressed bytes.
#[derive(Default)]
struct DecodedBytes(Vec<u8>);

impl Write for DecodedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_STEP_OUTPUT_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BodyDecoder {
    /// A decoder for this `content-encoding`, or `None` if it is unknown or means no compression.
    pub fn new(content_encoding: &str) -> Option<Self> {
        let out = DecodedBytes::default();
        let stream = match content_encoding.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => {
                DecoderStream::Gzip(Box::new(flate2::write::MultiGzDecoder::new(out)))
            }
            "deflate" => DecoderStream::Deflate(Box::new(flate2::write::ZlibDecoder::new(out))),
            "br" => {
                let decoder = brotli_decompressor::DecompressorWriter::new(out, DECODE_STEP_BYTES);
                DecoderStream::Brotli(Box::new(decoder))
            }
            "zstd" => {
                let mut decoder = zstd::stream::write::Decoder::new(out).ok()?;
                decoder.window_log_max(ZSTD_WINDOW_LOG).ok()?;
                DecoderStream::Zstd(Box::new(decoder))
            }
            _ => return None,
        };
        Some(Self { stream, decoded_bytes: 0 })
    }

    /// Decompresses the next bytes of the body. Fails on bad input and beyond the limits.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        for step in bytes.chunks(DECODE_STEP_BYTES) {
            let taken = match &mut self.stream {
                DecoderStream::Gzip(stream) => decode_step(stream, step, |s| s.get_mut()),
                DecoderStream::Deflate(stream) => decode_step(stream, step, |s| s.get_mut()),
                DecoderStream::Brotli(stream) => decode_step(stream, step, |s| s.get_mut()),
                DecoderStream::Zstd(stream) => decode_step(stream, step, |s| s.get_mut()),
            }?;
            self.decoded_bytes += taken.len();
            if self.decoded_bytes > MAX_DECODED_BYTES {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            if out.is_empty() {
                out = taken;
            } else {
                out.extend_from_slice(&taken);
            }
        }
        Ok(out)
    }

    /// Decompresses a whole body. Returns `None` if it is not compressed, or fails to decode.
    pub fn decode_all(content_encoding: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        Self::new(content_encoding)?.push(bytes).ok()
    }
}

fn decode_step<S: Write>(
    stream: &mut S,
    bytes: &[u8],
    out: impl Fn(&mut S) -> &mut DecodedBytes,
) -> io::Result<Vec<u8>> {
    stream.write_all(bytes)?;
    stream.flush()?;
    Ok(std::mem::take(&mut out(stream).0))
}

impl std::fmt::Debug for BodyDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BodyDecoder").field("decoded", &self.decoded_bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(coding: &str, bytes: &[u8]) -> Vec<u8> {
        match coding {
            "gzip" => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            "deflate" => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            _ => zstd::bulk::compress(bytes, 3).unwrap(),
        }
    }

    #[test]
    fn every_cut_gives_the_same_bytes() {
        let body: Vec<u8> = (0..20_000_u32).flat_map(|n| n.to_string().into_bytes()).collect();
        for coding in ["gzip", "deflate", "zstd"] {
            let bytes = compressed(coding, &body);
            for step in [1, 7, 1000, bytes.len()] {
                let mut decoder = BodyDecoder::new(coding).unwrap();
                let parts = bytes.chunks(step).map(|part| decoder.push(part).unwrap());
                assert_eq!(parts.collect::<Vec<_>>().concat(), body, "{coding} by {step}");
            }
        }
    }

    #[test]
    fn decodes_a_truncated_body_up_to_the_cut() {
        let body = b"data: one\n\n".repeat(2000);
        let bytes = compressed("gzip", &body);
        let mut decoder = BodyDecoder::new("gzip").unwrap();
        let half = decoder.push(&bytes[..bytes.len() / 2]).unwrap();
        assert!(!half.is_empty() && body.starts_with(&half));
    }

    #[test]
    fn bombs_and_uncompressed_bytes_are_errors() {
        let bomb = compressed("gzip", &vec![0; MAX_DECODED_BYTES + (1 << 20)]);
        assert_eq!(
            BodyDecoder::new("gzip").unwrap().push(&bomb).unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
        assert!(BodyDecoder::new("gzip").unwrap().push(b"plain text, no gzip at all").is_err());
        assert!(BodyDecoder::new("identity").is_none());
    }
}
