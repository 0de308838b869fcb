//! One exchange: a request and its response, as recorded.

use std::borrow::Cow;

use super::assembly::assemble_body;
use super::body_format::BodyFormat;
use super::body_meter::MeasuredBody;
use super::decoded_body::{DecodedBody, MAX_REQUEST_BYTES, MAX_RESPONSE_BYTES};
use super::dialect::ApiDialect;
use super::piece::{HttpHeaders, TrafficPiece, TrafficPieceKind};
use steno_model::json::Object;
use steno_model::timestamp::Timestamp;

/// A request and the response so far.
#[derive(Clone, Debug, Default)]
pub struct ApiExchange {
    /// When the request arrived.
    pub started_at: Option<Timestamp>,
    /// The request's HTTP method.
    pub method: String,
    /// The name of the upstream.
    pub upstream: String,
    /// The path and query.
    pub path: String,
    /// The request's headers.
    pub request_headers: HttpHeaders,
    /// The request's body, as recorded.
    pub request_bytes: Vec<u8>,
    /// Whether more of the request's body is to come.
    pub is_uploading: bool,
    /// Length and hash of the request's body, if recorded.
    pub measured_request: Option<MeasuredBody>,
    /// Why the request's body is incomplete.
    pub upload_error: Option<String>,
    /// Trailers of the request.
    pub request_trailers: HttpHeaders,
    /// Informational responses (1xx): status and headers.
    pub informational: Vec<(u16, HttpHeaders)>,
    /// The response's status, once its head has arrived.
    pub status: Option<u16>,
    /// The response's headers.
    pub headers: HttpHeaders,
    /// Microseconds from the request to the response's head.
    pub head_micros: u64,
    /// The response's bytes: each chunk with the microseconds from the request to its arrival.
    pub chunks: Vec<(u64, Vec<u8>)>,
    /// Microseconds from the request to the last chunk.
    pub last_chunk_micros: u64,
    /// Whether response bytes over the limit were dropped here.
    pub is_truncated: bool,
    /// Length and hash of the response's body, if recorded.
    pub measured_response: Option<MeasuredBody>,
    /// Trailers of the response.
    pub trailers: HttpHeaders,
    /// How the exchange ended, if it did.
    pub end: Option<ExchangeEnd>,
    /// The API that the request speaks.
    pub(super) dialect: ApiDialect,
}

/// How an exchange ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangeEnd {
    /// Microseconds from the request to the end.
    pub after_micros: u64,
    /// Why the exchange ended early.
    pub error: Option<String>,
}

impl ApiExchange {
    /// Begins an exchange with its request piece.
    pub fn from_request(piece: &TrafficPiece<'_>) -> Self {
        let text = |text: &Option<std::borrow::Cow<'_, str>>| {
            text.as_deref().unwrap_or_default().to_owned()
        };
        let mut exchange = Self {
            started_at: piece.at,
            method: text(&piece.method),
            upstream: text(&piece.upstream),
            path: text(&piece.path),
            request_headers: piece.body_headers(),
            request_bytes: piece.bytes(),
            is_uploading: piece.is_uploaded,
            measured_request: piece.measured_body(),
            ..Self::default()
        };
        exchange.detect_dialect();
        exchange
    }

    /// Detects the API of the request. Parses the body only if the path serves several APIs.
    fn detect_dialect(&mut self) {
        let is_read = ApiDialect::from_path(&self.path) == ApiDialect::Invoke;
        let request = if is_read { self.parse_request() } else { None };
        self.dialect = ApiDialect::from_request(&self.method, &self.path, request.as_ref());
    }

    /// A response header, by name.
    pub(super) fn response_header(&self, header: &str) -> Option<&str> {
        let field = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(header));
        field.map(|(_, value)| value.as_str())
    }

    /// Adds a later piece.
    pub fn push_piece(&mut self, piece: TrafficPiece<'_>) {
        let after = piece.after.unwrap_or_default();
        match piece.traffic {
            TrafficPieceKind::Upload if self.is_uploading => {
                self.request_bytes.extend(piece.bytes())
            }
            TrafficPieceKind::UploadEnd => {
                self.measured_request = piece.measured_body().or(self.measured_request.take());
                self.request_trailers.clone_from(&piece.headers);
                self.upload_error = piece.error.map(Cow::into_owned);
                self.is_uploading = false;
                self.detect_dialect();
            }
            TrafficPieceKind::Informational => {
                let status = piece.status.unwrap_or_default();
                self.informational.push((status, piece.headers));
            }
            TrafficPieceKind::Response => {
                self.status = piece.status;
                self.head_micros = after;
                self.headers = piece.body_headers();
            }
            TrafficPieceKind::Chunk => {
                self.last_chunk_micros = after;
                self.chunks.push((after, piece.bytes()));
            }
            TrafficPieceKind::End => {
                self.measured_response = piece.measured_body();
                self.trailers.clone_from(&piece.headers);
                let error = piece.error.map(Cow::into_owned);
                self.end = Some(ExchangeEnd { after_micros: after, error });
            }
            // WebSocket messages become pieces of exchanges before they arrive here.
            TrafficPieceKind::Settings
            | TrafficPieceKind::Request
            | TrafficPieceKind::Upload
            | TrafficPieceKind::Moved
            | TrafficPieceKind::Sent
            | TrafficPieceKind::Received => {}
        }
    }

    /// Adds a later piece, and buffers at most `room` bytes of a chunk. All chunks are joined into one. Returns how
    /// many bytes were added.
    pub fn push_piece_limited(&mut self, piece: TrafficPiece<'_>, room: usize) -> usize {
        if piece.traffic != TrafficPieceKind::Chunk {
            self.push_piece(piece);
            return 0;
        }
        let (after, bytes) = (piece.after.unwrap_or_default(), piece.bytes());
        self.last_chunk_micros = after;
        if self.chunks.is_empty() {
            self.chunks.push((after, Vec::new()));
        }
        let Some((_, held)) = self.chunks.first_mut() else { return 0 };
        // One byte over the limit shows that the response is too large.
        let room = room.min((MAX_RESPONSE_BYTES + 1).saturating_sub(held.len()));
        let added = bytes.len().min(room);
        held.extend_from_slice(&bytes[..added]);
        self.is_truncated |= added < bytes.len();
        added
    }

    /// The API that the request speaks.
    pub fn dialect(&self) -> ApiDialect {
        self.dialect
    }

    /// The request's fields, if its body is a JSON object or a form.
    pub fn parse_request(&self) -> Option<Object> {
        self.request_format().parse_fields(&self.decode_request_body().bytes)
    }

    /// The format of the request's body.
    pub(super) fn request_format(&self) -> BodyFormat {
        BodyFormat::from_headers(&self.request_headers)
    }

    /// The response so far, decompressed up to the size limit.
    pub fn decoded_response(&self) -> Vec<u8> {
        let parts: Vec<_> = self.chunks.iter().map(|(_, bytes)| bytes.as_slice()).collect();
        DecodedBody::new(&self.headers, &parts.concat(), MAX_RESPONSE_BYTES).bytes.into_owned()
    }

    /// The request's body, decompressed up to the size limit.
    pub fn decoded_request(&self) -> Cow<'_, [u8]> {
        self.decode_request_body().bytes
    }

    /// Whether the response is complete: it ended without error, or the connection closed after the last event.
    pub fn has_complete_response(&self) -> bool {
        let is_ended = self.end.as_ref().is_some_and(|end| end.error.is_none());
        is_ended || assemble_body(self.dialect(), &self.decoded_response()).is_complete
    }

    /// The request's body, decompressed.
    pub(super) fn decode_request_body(&self) -> DecodedBody<'_> {
        DecodedBody::new(&self.request_headers, &self.request_bytes, MAX_REQUEST_BYTES)
    }

    /// The response's body, decompressed. All chunks must be joined into one.
    pub(super) fn decode_response_body(&self) -> DecodedBody<'_> {
        let bytes = self.chunks.first().map_or(&[][..], |(_, bytes)| bytes);
        let mut body = DecodedBody::new(&self.headers, bytes, MAX_RESPONSE_BYTES);
        body.is_too_large |= self.is_truncated;
        body
    }

    /// The time `after` microseconds after the request.
    pub fn timestamp_after(&self, after: u64) -> Option<Timestamp> {
        let after = jiff::SignedDuration::from_micros(i64::try_from(after).ok()?);
        let instant = self.started_at?.instant().checked_add(after).ok()?;
        Some(Timestamp::from_instant(instant, 6))
    }
}
