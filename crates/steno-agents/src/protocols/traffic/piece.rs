//! One record of traffic: the head of a request or response, bytes of a body, or the end of an exchange.
//!
//! Each piece is one line of JSON. Times are microseconds since the request. Bytes are text if they are valid UTF-8,
//! else base64.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use super::body_meter::MeasuredBody;
use steno_model::session::SessionId;
use steno_model::timestamp::Timestamp;

/// Names and values of HTTP headers, in order.
pub type HttpHeaders = Vec<(String, String)>;

/// The type of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrafficPieceKind {
    /// Settings for decoding the recording.
    Settings,
    /// A request.
    Request,
    /// Bytes of a request's body, if the request piece does not hold it.
    Upload,
    /// The end of a request's body, complete or failed.
    UploadEnd,
    /// The head of an informational response (1xx).
    Informational,
    /// The head of the response.
    Response,
    /// Bytes of the response's body, as forwarded.
    Chunk,
    /// A WebSocket message from the client.
    Sent,
    /// A WebSocket message to the client.
    Received,
    /// The end of the response, complete or failed.
    End,
    /// The exchange moved to another session.
    Moved,
}

/// One record. Fields that do not apply to its kind are omitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficPiece<'a> {
    /// The type. The field's name identifies our records.
    pub traffic: TrafficPieceKind,
    /// The id that joins the pieces of an exchange.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub exchange: Cow<'a, str>,
    /// When the request arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Microseconds since the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// The request's HTTP method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Cow<'a, str>>,
    /// The name of the upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Cow<'a, str>>,
    /// The path and query sent to the upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Cow<'a, str>>,
    /// The response's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Whether the request's body follows in pieces of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_uploaded: bool,
    /// Length of the whole body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// BLAKE3 hash of the whole body, as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blake3: Option<Cow<'a, str>>,
    /// BLAKE3 hash of a multipart body without its boundaries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_blake3: Option<Cow<'a, str>>,
    /// Bytes of a body or message that are not in the recording, for example audio.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
    /// Headers, with redacted secrets. At an end, the trailers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: HttpHeaders,
    /// The `content-encoding` of a body that was recorded decompressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoded: Option<Cow<'a, str>>,
    /// How many secrets were redacted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redactions: u64,
    /// Bytes, if they are valid UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    /// Bytes in base64, otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Why the exchange failed or ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
    /// Whether conversations after the first have sources of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagents: Option<bool>,
    /// The session that the exchange moved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl<'a> TrafficPiece<'a> {
    /// The headers that apply to the recorded bytes: a decompressed body has no `content-encoding` or `content-length`.
    pub(super) fn body_headers(&self) -> HttpHeaders {
        let fits = |name: &str| {
            let is_about_coding = ["content-encoding", "content-length"]
                .iter()
                .any(|header| name.eq_ignore_ascii_case(header));
            self.decoded.is_none() || !is_about_coding
        };
        self.headers.iter().filter(|(name, _)| fits(name)).cloned().collect()
    }

    /// Clones borrowed data.
    pub fn into_owned(self) -> TrafficPiece<'static> {
        let owned = |text: Option<Cow<'a, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        TrafficPiece {
            traffic: self.traffic,
            exchange: Cow::Owned(self.exchange.into_owned()),
            at: self.at,
            after: self.after,
            method: owned(self.method),
            upstream: owned(self.upstream),
            path: owned(self.path),
            status: self.status,
            is_uploaded: self.is_uploaded,
            length: self.length,
            blake3: owned(self.blake3),
            content_blake3: owned(self.content_blake3),
            headers: self.headers,
            decoded: owned(self.decoded),
            redactions: self.redactions,
            text: owned(self.text),
            base64: self.base64,
            omitted: self.omitted,
            error: owned(self.error),
            subagents: self.subagents,
            session: self.session,
        }
    }

    /// An empty piece of an exchange.
    pub fn new(traffic: TrafficPieceKind, exchange: impl Into<Cow<'a, str>>) -> Self {
        Self {
            traffic,
            exchange: exchange.into(),
            at: None,
            after: None,
            method: None,
            upstream: None,
            path: None,
            status: None,
            is_uploaded: false,
            length: None,
            blake3: None,
            content_blake3: None,
            omitted: 0,
            headers: HttpHeaders::new(),
            decoded: None,
            redactions: 0,
            text: None,
            base64: None,
            error: None,
            subagents: None,
            session: None,
        }
    }

    /// A piece that moves an exchange to another session.
    pub fn new_moved(exchange: &'a str, session: SessionId) -> Self {
        Self { session: Some(session), ..Self::new(TrafficPieceKind::Moved, exchange) }
    }

    /// A settings piece: whether conversations after the first have sources of their own.
    pub fn new_settings(subagents: bool) -> Self {
        Self { subagents: Some(subagents), ..Self::new(TrafficPieceKind::Settings, "") }
    }

    /// Bytes of a response.
    pub fn new_chunk(exchange: &'a str, after: u64, bytes: &'a [u8]) -> Self {
        let piece = Self { after: Some(after), ..Self::new(TrafficPieceKind::Chunk, exchange) };
        piece.with_bytes(bytes)
    }

    /// Bytes of a request.
    pub fn new_upload(exchange: &'a str, after: u64, bytes: &'a [u8]) -> Self {
        let piece = Self { after: Some(after), ..Self::new(TrafficPieceKind::Upload, exchange) };
        piece.with_bytes(bytes)
    }

    /// Adds the length and hash of the body.
    pub fn with_measured_body(mut self, measured: MeasuredBody) -> Self {
        self.length = Some(measured.length);
        self.omitted = measured.omitted;
        self.blake3 = Some(measured.blake3.into());
        self.content_blake3 = measured.content_blake3.map(Cow::Owned);
        self
    }

    /// Length and hash of the body, if the piece has them.
    pub(super) fn measured_body(&self) -> Option<MeasuredBody> {
        Some(MeasuredBody {
            length: self.length?,
            omitted: self.omitted,
            blake3: self.blake3.as_deref()?.to_owned(),
            content_blake3: self.content_blake3.as_deref().map(str::to_owned),
        })
    }

    /// The end of a response.
    pub fn new_end(exchange: &'a str, after: u64, error: Option<&'a str>) -> Self {
        let error = error.map(Cow::Borrowed);
        Self { after: Some(after), error, ..Self::new(TrafficPieceKind::End, exchange) }
    }

    /// Adds bytes.
    pub fn with_bytes(mut self, bytes: &'a [u8]) -> Self {
        match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => self.text = Some(Cow::Borrowed(text)),
            Err(_) => self.base64 = Some(BASE64.encode(bytes)),
        }
        self
    }

    /// The piece's bytes; empty if they cannot be decoded.
    pub fn bytes(&self) -> Vec<u8> {
        match (&self.text, &self.base64) {
            (Some(text), _) => text.as_bytes().to_vec(),
            (None, Some(base64)) => BASE64.decode(base64).unwrap_or_default(),
            (None, None) => Vec::new(),
        }
    }

    /// Approximate length of the JSON line.
    pub fn line_size(&self) -> usize {
        let text = self.text.as_ref().map_or(0, |text| text.len());
        text + self.base64.as_ref().map_or(0, String::len) + 200
    }

    /// Encodes the piece as one line of JSON.
    pub fn to_line(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("our types have string keys")
    }

    /// Parses a piece. Returns `None` for any other record.
    pub fn parse(record: &[u8]) -> Option<TrafficPiece<'static>> {
        if !Self::is_piece(record) {
            return None;
        }
        serde_json::from_slice(record).ok()
    }

    /// Whether a record has the prefix of a piece.
    pub fn is_piece(record: &[u8]) -> bool {
        record.trim_ascii_start().starts_with(b"{\"traffic\":\"")
    }
}
