//! One record of the traffic: the head of a request or a response, some bytes of an answer, or its end.
//!
//! Each is one line of JSON. Times are microseconds since the request; bytes stand as text where they are text.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use super::body_meter::MeasuredBody;
use crate::session::SessionId;
use crate::timestamp::Timestamp;

/// Names and values of HTTP headers, in their order.
pub type Headers = Vec<(String, String)>;

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PieceKind {
    /// What is to be told of all that was recorded.
    Settings,
    /// What was asked.
    Request,
    /// Some bytes of what was asked, where they are more than a request holds.
    Upload,
    /// The end of those, good or bad.
    UploadEnd,
    /// The head of an answer that only says that another one will come (1xx).
    Informational,
    /// The head of the answer.
    Response,
    /// Some bytes of the answer, as they were passed on.
    Chunk,
    /// A message that the client sent on a WebSocket.
    Sent,
    /// A message that the client got on a WebSocket.
    Received,
    /// The end of the answer, good or bad.
    End,
    /// The exchange is kept in another session, to which it belongs.
    Moved,
}

/// One record. Fields that a kind does not have are left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Piece<'a> {
    /// What it is; the name of the field marks our records among all others.
    pub traffic: PieceKind,
    /// Joins the pieces of one exchange.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub exchange: Cow<'a, str>,
    /// When the request came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Microseconds since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// The request's method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Cow<'a, str>>,
    /// The name of the upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Cow<'a, str>>,
    /// The path and query that upstream was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Cow<'a, str>>,
    /// The response's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Whether the body of a request follows in pieces of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_uploaded: bool,
    /// The length of a whole body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// The BLAKE3 hash of a whole body, as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blake3: Option<Cow<'a, str>>,
    /// The same of its parts, without the boundaries between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_blake3: Option<Cow<'a, str>>,
    /// How many bytes of a body or a message are not in the record, such as those of sound.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
    /// Headers, those with secrets without their values. At an end, those that followed the body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Headers,
    /// How the body was compressed, of which the record has the decompressed bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoded: Option<Cow<'a, str>>,
    /// How many secrets were replaced by markers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redactions: u64,
    /// Bytes that are text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    /// Bytes that are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Why the exchange ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
    /// Whether conversations beside the first have sources of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagents: Option<bool>,
    /// The session to which an exchange was moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl<'a> Piece<'a> {
    /// The headers as they fit to the bytes: those of a body that was decompressed do not say that it is compressed.
    pub(super) fn headers_of_body(&self) -> Headers {
        let fits = |name: &str| {
            let is_about_coding = ["content-encoding", "content-length"]
                .iter()
                .any(|header| name.eq_ignore_ascii_case(header));
            self.decoded.is_none() || !is_about_coding
        };
        self.headers.iter().filter(|(name, _)| fits(name)).cloned().collect()
    }

    /// The same piece, without what it borrows.
    pub fn into_owned(self) -> Piece<'static> {
        let owned = |text: Option<Cow<'a, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        Piece {
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

    /// A piece of an exchange, with nothing in it yet.
    pub fn new(traffic: PieceKind, exchange: impl Into<Cow<'a, str>>) -> Self {
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
            headers: Headers::new(),
            decoded: None,
            redactions: 0,
            text: None,
            base64: None,
            error: None,
            subagents: None,
            session: None,
        }
    }

    /// Says that an exchange is kept in another session.
    pub(crate) fn moved(exchange: &'a str, session: SessionId) -> Self {
        Self { session: Some(session), ..Self::new(PieceKind::Moved, exchange) }
    }

    /// Says whether conversations beside the first have sources of their own.
    pub fn settings(subagents: bool) -> Self {
        Self { subagents: Some(subagents), ..Self::new(PieceKind::Settings, "") }
    }

    /// Some bytes of an answer.
    pub fn chunk(exchange: &'a str, after: u64, bytes: &'a [u8]) -> Self {
        let piece = Self { after: Some(after), ..Self::new(PieceKind::Chunk, exchange) };
        piece.with_bytes(bytes)
    }

    /// Some bytes of a request.
    pub fn upload(exchange: &'a str, after: u64, bytes: &'a [u8]) -> Self {
        let piece = Self { after: Some(after), ..Self::new(PieceKind::Upload, exchange) };
        piece.with_bytes(bytes)
    }

    /// The same piece with what its body was.
    pub fn with_measure(mut self, measured: MeasuredBody) -> Self {
        self.length = Some(measured.length);
        self.omitted = measured.omitted;
        self.blake3 = Some(measured.blake3.into());
        self.content_blake3 = measured.content_blake3.map(Cow::Owned);
        self
    }

    /// What the body was to which the piece belongs.
    pub(super) fn measure(&self) -> Option<MeasuredBody> {
        Some(MeasuredBody {
            length: self.length?,
            omitted: self.omitted,
            blake3: self.blake3.as_deref()?.to_owned(),
            content_blake3: self.content_blake3.as_deref().map(str::to_owned),
        })
    }

    /// The end of an answer.
    pub fn end(exchange: &'a str, after: u64, error: Option<&'a str>) -> Self {
        let error = error.map(Cow::Borrowed);
        Self { after: Some(after), error, ..Self::new(PieceKind::End, exchange) }
    }

    /// The same piece with these bytes.
    pub fn with_bytes(mut self, bytes: &'a [u8]) -> Self {
        match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => self.text = Some(Cow::Borrowed(text)),
            Err(_) => self.base64 = Some(BASE64.encode(bytes)),
        }
        self
    }

    /// The bytes that it holds; none where they cannot be told.
    pub fn bytes(&self) -> Vec<u8> {
        match (&self.text, &self.base64) {
            (Some(text), _) => text.as_bytes().to_vec(),
            (None, Some(base64)) => BASE64.decode(base64).unwrap_or_default(),
            (None, None) => Vec::new(),
        }
    }

    /// About how many bytes its line takes.
    pub(crate) fn size(&self) -> usize {
        let text = self.text.as_ref().map_or(0, |text| text.len());
        text + self.base64.as_ref().map_or(0, String::len) + 200
    }

    /// The piece as one line of JSON.
    pub fn to_line(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("our types have string keys")
    }

    /// The piece that a record is; none if it is another's.
    pub fn of(record: &[u8]) -> Option<Piece<'static>> {
        if !Self::marks(record) {
            return None;
        }
        serde_json::from_slice(record).ok()
    }

    /// Whether a record begins as ours do.
    pub fn marks(record: &[u8]) -> bool {
        record.trim_ascii_start().starts_with(b"{\"traffic\":\"")
    }
}
