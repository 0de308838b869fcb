//! One exchange: a request, and the answer as it came.

use std::borrow::Cow;

use super::assemble::assemble;
use super::body::{ANSWER_LIMIT, DecodedBody, REQUEST_LIMIT};
use super::body_meter::MeasuredBody;
use super::dialect::Dialect;
use super::form_body::BodyFields;
use super::piece::{Headers, Piece, PieceKind};
use crate::json::Object;
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
    /// Whether some of the body is still to come.
    pub is_uploading: bool,
    /// What the request's body was, where that is stated.
    pub measured_request: Option<MeasuredBody>,
    /// Why the request's body is not whole.
    pub upload_error: Option<String>,
    /// Headers that followed the request's body.
    pub request_trailers: Headers,
    /// Heads of answers that only announced another one, by their status.
    pub informational: Vec<(u16, Headers)>,
    /// The response's status, once its head has come.
    pub status: Option<u16>,
    /// The response's headers.
    pub headers: Headers,
    /// Microseconds until the head of the response.
    pub head_after: u64,
    /// The answer's bytes, each chunk with the microseconds until it came.
    pub chunks: Vec<(u64, Vec<u8>)>,
    /// Microseconds until the last of them.
    pub last_after: u64,
    /// Whether bytes of the answer are left out here because they are too many.
    pub is_shortened: bool,
    /// What the answer's body was, where that is stated.
    pub measured_answer: Option<MeasuredBody>,
    /// Headers that followed the answer's body.
    pub trailers: Headers,
    /// How it ended, if it did.
    pub end: Option<End>,
    /// The API that was asked.
    pub(super) dialect: Dialect,
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

    /// Finds the API that is asked. Only where a path serves several, the body is read for it.
    fn find_dialect(&mut self) {
        let is_read = Dialect::of(&self.path) == Dialect::Invoke;
        let request = if is_read { self.asked() } else { None };
        self.dialect = Dialect::of_request(&self.method, &self.path, request.as_ref());
    }

    /// A header of the answer.
    pub(super) fn answer_header(&self, wanted: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.as_str())
    }

    /// Takes a later piece.
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
            // Messages of WebSockets become pieces of exchanges before they come here.
            PieceKind::Settings
            | PieceKind::Request
            | PieceKind::Upload
            | PieceKind::Moved
            | PieceKind::Sent
            | PieceKind::Received => {}
        }
    }

    /// Takes a later piece for somebody who only reads the answer: it is held as one chunk, with at most `room` more
    /// bytes. Gives how many were added.
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
        // One byte more than the limit tells that the answer is longer.
        let room = room.min((ANSWER_LIMIT + 1).saturating_sub(held.len()));
        let added = bytes.len().min(room);
        held.extend_from_slice(&bytes[..added]);
        self.is_shortened |= added < bytes.len();
        added
    }

    /// The API that was asked.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// What was asked, where that is a JSON object or a form.
    pub fn asked(&self) -> Option<Object> {
        self.request_fields().read(&self.request_body().bytes)
    }

    /// How the fields of the request are written.
    pub(super) fn request_fields(&self) -> BodyFields {
        BodyFields::of_headers(&self.request_headers)
    }

    /// The answer as it came so far, decompressed, up to the limit of what is read.
    pub fn answer(&self) -> Vec<u8> {
        let parts: Vec<_> = self.chunks.iter().map(|(_, bytes)| bytes.as_slice()).collect();
        DecodedBody::new(&self.headers, &parts.concat(), ANSWER_LIMIT).bytes.into_owned()
    }

    /// The body of the request, decompressed, up to the limit of what is read.
    pub fn decoded_request(&self) -> Cow<'_, [u8]> {
        self.request_body().bytes
    }

    /// Whether the answer is whole: it came to its end, or the connection was closed only after the last event.
    pub fn has_whole_answer(&self) -> bool {
        let is_ended = self.end.as_ref().is_some_and(|end| end.error.is_none());
        is_ended || assemble(self.dialect(), &self.answer()).is_complete
    }

    /// The body of the request, decompressed.
    pub(super) fn request_body(&self) -> DecodedBody<'_> {
        DecodedBody::new(&self.request_headers, &self.body, REQUEST_LIMIT)
    }

    /// The body of an answer that was taken in as one chunk, decompressed.
    pub(super) fn answer_body(&self) -> DecodedBody<'_> {
        let bytes = self.chunks.first().map_or(&[][..], |(_, bytes)| bytes);
        let mut body = DecodedBody::new(&self.headers, bytes, ANSWER_LIMIT);
        body.is_too_large |= self.is_shortened;
        body
    }

    /// When something happened that came so many microseconds after the request.
    pub fn moment(&self, after: u64) -> Option<Timestamp> {
        let after = jiff::SignedDuration::from_micros(i64::try_from(after).ok()?);
        let instant = self.at?.instant().checked_add(after).ok()?;
        Some(Timestamp::from_instant(instant, 6))
    }
}
