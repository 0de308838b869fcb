//! One exchange: a request and its response, as recorded.

use std::borrow::Cow;

use super::assemble::assemble;
use super::body::{ANSWER_LIMIT, DecodedBody, REQUEST_LIMIT};
use super::body_meter::MeasuredBody;
use super::dialect::Dialect;
use super::form_body::BodyFields;
use super::piece::{Headers, Piece, PieceKind};
use crate::json::Object;
use crate::timestamp::Timestamp;

/// A request and the response so far.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// When the request arrived.
    pub at: Option<Timestamp>,
    /// The request's HTTP method.
    pub method: String,
    /// The name of the upstream.
    pub upstream: String,
    /// The path and query.
    pub path: String,
    /// The request's headers.
    pub request_headers: Headers,
    /// The request's body, as recorded.
    pub body: Vec<u8>,
    /// Whether more of the request's body is to come.
    pub is_uploading: bool,
    /// Length and hash of the request's body, if recorded.
    pub measured_request: Option<MeasuredBody>,
    /// Why the request's body is incomplete.
    pub upload_error: Option<String>,
    /// Trailers of the request.
    pub request_trailers: Headers,
    /// Informational responses (1xx): status and headers.
    pub informational: Vec<(u16, Headers)>,
    /// The response's status, once its head has arrived.
    pub status: Option<u16>,
    /// The response's headers.
    pub headers: Headers,
    /// Microseconds from the request to the response's head.
    pub head_after: u64,
    /// The response's bytes: each chunk with the microseconds from the request to its arrival.
    pub chunks: Vec<(u64, Vec<u8>)>,
    /// Microseconds from the request to the last chunk.
    pub last_after: u64,
    /// Whether response bytes over the limit were dropped here.
    pub is_shortened: bool,
    /// Length and hash of the response's body, if recorded.
    pub measured_answer: Option<MeasuredBody>,
    /// Trailers of the response.
    pub trailers: Headers,
    /// How the exchange ended, if it did.
    pub end: Option<End>,
    /// The API that the request speaks.
    pub(super) dialect: Dialect,
}

/// How an exchange ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Microseconds from the request to the end.
    pub after: u64,
    /// Why the exchange ended early.
    pub error: Option<String>,
}

impl Exchange {
    /// Begins an exchange with its request piece.
    pub fn begin(piece: &Piece<'_>) -> Self {
        let text = |text: &Option<std::borrow::Cow<'_, str>>| {
            text.as_deref().unwrap_or_default().to_owned()
        };
        let mut exchange = Self {
            at: piece.at,
            method: text(&piece.method),
            upstream: text(&piece.upstream),
            path: text(&piece.path),
            request_headers: piece.headers_of_body(),
            body: piece.bytes(),
            is_uploading: piece.is_uploaded,
            measured_request: piece.measure(),
            ..Self::default()
        };
        exchange.find_dialect();
        exchange
    }

    /// Detects the API of the request. Parses the body only if the path serves several APIs.
    fn find_dialect(&mut self) {
        let is_read = Dialect::of(&self.path) == Dialect::Invoke;
        let request = if is_read { self.asked() } else { None };
        self.dialect = Dialect::of_request(&self.method, &self.path, request.as_ref());
    }

    /// A response header, by name.
    pub(super) fn answer_header(&self, header: &str) -> Option<&str> {
        let field = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(header));
        field.map(|(_, value)| value.as_str())
    }

    /// Adds a later piece.
    pub fn take(&mut self, piece: Piece<'_>) {
        let after = piece.after.unwrap_or_default();
        match piece.traffic {
            PieceKind::Upload if self.is_uploading => self.body.extend(piece.bytes()),
            PieceKind::UploadEnd => {
                self.measured_request = piece.measure().or(self.measured_request.take());
                self.request_trailers.clone_from(&piece.headers);
                self.upload_error = piece.error.map(Cow::into_owned);
                self.is_uploading = false;
                self.find_dialect();
            }
            PieceKind::Informational => {
                let status = piece.status.unwrap_or_default();
                self.informational.push((status, piece.headers));
            }
            PieceKind::Response => {
                self.status = piece.status;
                self.head_after = after;
                self.headers = piece.headers_of_body();
            }
            PieceKind::Chunk => {
                self.last_after = after;
                self.chunks.push((after, piece.bytes()));
            }
            PieceKind::End => {
                self.measured_answer = piece.measure();
                self.trailers.clone_from(&piece.headers);
                let error = piece.error.map(Cow::into_owned);
                self.end = Some(End { after, error });
            }
            // WebSocket messages become pieces of exchanges before they arrive here.
            PieceKind::Settings
            | PieceKind::Request
            | PieceKind::Upload
            | PieceKind::Moved
            | PieceKind::Sent
            | PieceKind::Received => {}
        }
    }

    /// Adds a later piece, and buffers at most `room` bytes of a chunk. All chunks are joined into one. Returns how
    /// many bytes were added.
    pub(super) fn take_some(&mut self, piece: Piece<'_>, room: usize) -> usize {
        if piece.traffic != PieceKind::Chunk {
            self.take(piece);
            return 0;
        }
        let (after, bytes) = (piece.after.unwrap_or_default(), piece.bytes());
        self.last_after = after;
        if self.chunks.is_empty() {
            self.chunks.push((after, Vec::new()));
        }
        let Some((_, held)) = self.chunks.first_mut() else { return 0 };
        // One byte over the limit shows that the response is too large.
        let room = room.min((ANSWER_LIMIT + 1).saturating_sub(held.len()));
        let added = bytes.len().min(room);
        held.extend_from_slice(&bytes[..added]);
        self.is_shortened |= added < bytes.len();
        added
    }

    /// The API that the request speaks.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The request's fields, if its body is a JSON object or a form.
    pub fn asked(&self) -> Option<Object> {
        self.request_fields().read(&self.request_body().bytes)
    }

    /// The format of the request's body.
    pub(super) fn request_fields(&self) -> BodyFields {
        BodyFields::of_headers(&self.request_headers)
    }

    /// The response so far, decompressed up to the size limit.
    pub fn answer(&self) -> Vec<u8> {
        let parts: Vec<_> = self.chunks.iter().map(|(_, bytes)| bytes.as_slice()).collect();
        DecodedBody::new(&self.headers, &parts.concat(), ANSWER_LIMIT).bytes.into_owned()
    }

    /// The request's body, decompressed up to the size limit.
    pub fn decoded_request(&self) -> Cow<'_, [u8]> {
        self.request_body().bytes
    }

    /// Whether the response is complete: it ended without error, or the connection closed after the last event.
    pub fn has_whole_answer(&self) -> bool {
        let is_ended = self.end.as_ref().is_some_and(|end| end.error.is_none());
        is_ended || assemble(self.dialect(), &self.answer()).is_complete
    }

    /// The request's body, decompressed.
    pub(super) fn request_body(&self) -> DecodedBody<'_> {
        DecodedBody::new(&self.request_headers, &self.body, REQUEST_LIMIT)
    }

    /// The response's body, decompressed. All chunks must be joined into one.
    pub(super) fn answer_body(&self) -> DecodedBody<'_> {
        let bytes = self.chunks.first().map_or(&[][..], |(_, bytes)| bytes);
        let mut body = DecodedBody::new(&self.headers, bytes, ANSWER_LIMIT);
        body.is_too_large |= self.is_shortened;
        body
    }

    /// The time `after` microseconds after the request.
    pub fn moment(&self, after: u64) -> Option<Timestamp> {
        let after = jiff::SignedDuration::from_micros(i64::try_from(after).ok()?);
        let instant = self.at?.instant().checked_add(after).ok()?;
        Some(Timestamp::from_instant(instant, 6))
    }
}
