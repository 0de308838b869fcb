//! One exchange: a request, and the answer as it came.

use std::io::Read;

use super::dialect::Dialect;
use super::piece::{Headers, Piece, PieceKind};
use crate::json::Object;
use crate::source::DOCUMENT_LIMIT;
use crate::timestamp::Timestamp;

/// A request and its answer, as far as it has come.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// When the request came.
    pub at: Option<Timestamp>,
    /// The request's method.
    pub method: String,
    /// The upstream that was asked.
    pub upstream: String,
    /// The path and query.
    pub path: String,
    /// The request's headers.
    pub request_headers: Headers,
    /// The request's body.
    pub body: Vec<u8>,
    /// The response's status, once its head has come.
    pub status: Option<u16>,
    /// The response's headers.
    pub headers: Headers,
    /// Microseconds until the head of the response.
    pub head_after: u64,
    /// The answer's bytes, each chunk with the microseconds until it came.
    pub chunks: Vec<(u64, Vec<u8>)>,
    /// How it ended, if it did.
    pub end: Option<End>,
}

/// How an exchange ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Microseconds until it did.
    pub after: u64,
    /// Why it was early.
    pub error: Option<String>,
}

impl Exchange {
    /// Begins with a request.
    pub fn begin(piece: &Piece<'_>) -> Self {
        let text = |text: &Option<std::borrow::Cow<'_, str>>| {
            text.as_deref().unwrap_or_default().to_owned()
        };
        Self {
            at: piece.at,
            method: text(&piece.method),
            upstream: text(&piece.upstream),
            path: text(&piece.path),
            request_headers: piece.headers.clone(),
            body: piece.bytes(),
            ..Self::default()
        }
    }

    /// Takes a later piece.
    pub fn take(&mut self, piece: Piece<'_>) {
        let after = piece.after.unwrap_or_default();
        match piece.traffic {
            PieceKind::Response => {
                self.status = piece.status;
                self.head_after = after;
                self.headers = piece.headers;
            }
            PieceKind::Chunk => self.chunks.push((after, piece.bytes())),
            PieceKind::End => {
                let error = piece.error.map(std::borrow::Cow::into_owned);
                self.end = Some(End { after, error });
            }
            PieceKind::Settings | PieceKind::Request => {}
        }
    }

    /// The API that was asked.
    pub fn dialect(&self) -> Dialect {
        Dialect::of(&self.path)
    }

    /// What was asked, where that is a JSON object.
    pub fn asked(&self) -> Option<Object> {
        let body = decoded(&self.request_headers, &self.body);
        crate::agent::repair::parse(&body).ok()
    }

    /// The whole answer as it came so far, decompressed.
    pub fn answer(&self) -> Vec<u8> {
        let parts: Vec<_> = self.chunks.iter().map(|(_, bytes)| bytes.as_slice()).collect();
        decoded(&self.headers, &parts.concat())
    }

    /// When something happened that came so many microseconds after the request.
    pub fn moment(&self, after: u64) -> Option<Timestamp> {
        let after = jiff::SignedDuration::from_micros(i64::try_from(after).ok()?);
        let instant = self.at?.instant().checked_add(after).ok()?;
        Some(Timestamp::from_instant(instant, 6))
    }
}

/// Bytes as they were before they were compressed, as far as they go.
fn decoded(headers: &Headers, bytes: &[u8]) -> Vec<u8> {
    let named = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("content-encoding");
    let coding = headers.iter().find(named).map(|(_, value)| value.to_ascii_lowercase());
    let mut out = Vec::new();
    // A stream that was cut gives what it held up to there.
    let _ = match coding.as_deref().map(str::trim) {
        Some("gzip" | "x-gzip") => read_some(flate2::read::MultiGzDecoder::new(bytes), &mut out),
        Some("deflate") => read_some(flate2::read::ZlibDecoder::new(bytes), &mut out),
        Some("br") => read_some(brotli_decompressor::Decompressor::new(bytes, 4096), &mut out),
        Some("zstd") => zstd::Decoder::new(bytes).and_then(|decoder| read_some(decoder, &mut out)),
        _ => return bytes.to_vec(),
    };
    out
}

fn read_some(input: impl Read, out: &mut Vec<u8>) -> std::io::Result<usize> {
    input.take(DOCUMENT_LIMIT).read_to_end(out)
}
