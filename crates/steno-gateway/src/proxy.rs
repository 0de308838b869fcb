//! Passes requests on to upstream and answers back, and records both.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue,
};
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode, Uri};
use steno_core::traffic::Piece;
use steno_core::traffic::decoder::BodyDecoder;
use steno_core::traffic::piece::{Headers, PieceKind};
use steno_core::traffic::secrets::TrafficSecrets;
use steno_core::{Clock, Timestamp};
use uuid::Uuid;

use crate::connect::Asker;
use crate::guard::Guard;
use crate::refusal::refusal;
use crate::server::{Answer, Body, BodyError};
use crate::sessions::SessionRecorders;
use crate::tee::{ExchangeFate, Passing, Tee, reason};
use crate::upstream::{Upstream, Upstreams};

/// Larger bodies, and those that are no text, are passed on without being recorded.
const MOST: u64 = 32 << 20;

/// Headers that are between two neighbours only.
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What the gateway does with each request.
pub(crate) struct Proxy {
    pub(crate) asker: Asker,
    pub(crate) upstreams: Upstreams,
    pub(crate) guard: Guard,
    pub(crate) sessions: SessionRecorders,
    pub(crate) clock: Clock,
}

impl Proxy {
    /// Records a request and sends it on.
    async fn pass(
        &self,
        upstream: &Upstream,
        uri: Uri,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let (began, at) = (Instant::now(), self.clock.now());
        let (mut parts, body) = request.into_parts();
        let asked = parts.uri.path().to_owned();
        let collected = match collected(&parts.headers, body).await {
            Ok(collected) => collected,
            Err(error) => return refusal(&asked, StatusCode::BAD_REQUEST, &reason(&error)),
        };
        let id = Uuid::now_v7().simple().to_string();
        let recording = self.sessions.recorder_for(&headers_of(&parts.headers));
        let fate = ExchangeFate::Recorded;
        let secrets = TrafficSecrets::default();
        let (decoder, filter) = (None, None);
        let mut passing = Passing { recording, fate, id, began, secrets, decoder, filter };
        let kept = collected.kept.as_deref();
        record(&mut passing, &Asked { at, upstream, uri: &uri, parts: &parts, body: kept });
        let unanswered = Unanswered { passing: Some(passing) };
        readdress(&mut parts, uri);
        let answer = self.asker.request(Request::from_parts(parts, collected.body)).await;
        let mut passing = unanswered.answered();
        match answer {
            Ok(answer) => answered(answer, passing),
            Err(error) => {
                let reason = reason(&error);
                passing.end(Some(&reason));
                let message = format!("the gateway could not reach {}: {reason}", upstream.origin);
                refusal(&asked, StatusCode::BAD_GATEWAY, &message)
            }
        }
    }
}

/// A request on its way up.
struct Asked<'a> {
    at: Timestamp,
    upstream: &'a Upstream,
    uri: &'a Uri,
    parts: &'a Parts,
    body: Option<&'a [u8]>,
}

/// Records what is asked, without its secrets, which are known from then on.
fn record(passing: &mut Passing, asked: &Asked<'_>) {
    let path = asked.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut secrets = std::mem::take(&mut passing.secrets);
    note_headers(&asked.parts.headers, &mut secrets);
    secrets.note_path(path);
    let body = asked.body.filter(|body| body.len() as u64 <= MOST);
    let coding = content_encoding(&asked.parts.headers);
    let decoded = body.and_then(|body| BodyDecoder::decode_all(&coding, body));
    let mut filter = secrets.filter();
    let mut clean = filter.push(decoded.as_deref().or(body).unwrap_or_default());
    clean.extend(filter.finish());
    let mut piece = Piece::new(PieceKind::Request, passing.id.as_str());
    piece.redactions = filter.redactions();
    // With what its fields hold.
    let secrets = filter.into_secrets();
    piece.at = Some(asked.at);
    piece.method = Some(asked.parts.method.as_str().into());
    piece.upstream = Some(asked.upstream.name.as_str().into());
    piece.path = Some(secrets.redact_path(path).into());
    piece.headers = redacted_headers(&asked.parts.headers, &secrets);
    piece.decoded = decoded.is_some().then(|| coding.into());
    let piece = if body.is_some() { piece.with_bytes(&clean) } else { piece };
    let fate = passing.record(&[piece]);
    (passing.fate, passing.secrets) = (fate, secrets);
}

impl Answer for Proxy {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let asked = request.uri().path().to_owned();
        if let Some(reason) = self.guard.refuses(request.headers()) {
            return refusal(&asked, StatusCode::FORBIDDEN, reason);
        }
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
        // `GET http://other/` asks a proxy of another kind.
        let routed = self.upstreams.route(&path).filter(|_| request.uri().host().is_none());
        let Some((upstream, uri)) = routed else {
            let names: Vec<_> =
                self.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
            let names = names.join(", ");
            let reason = format!("no upstream for this path; paths begin with one of: {names}");
            return refusal(&asked, StatusCode::NOT_FOUND, &reason);
        };
        self.pass(upstream, uri, request).await
    }
}

/// An exchange while upstream has said nothing: if the client goes away meanwhile, that is recorded.
struct Unanswered {
    passing: Option<Passing>,
}

impl Unanswered {
    fn answered(mut self) -> Passing {
        self.passing.take().expect("it is taken once")
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(passing) = &mut self.passing {
            passing.end(Some("the client closed the connection before the answer"));
        }
    }
}

/// Records the head of an answer, and has its body recorded while it passes.
fn answered(answer: Response<Incoming>, mut passing: Passing) -> Response<Body> {
    let (mut parts, body) = answer.into_parts();
    let coding = content_encoding(&parts.headers);
    passing.decoder = BodyDecoder::new(&coding);
    // What upstream sets may be a secret too, but is not one that it would repeat.
    let mut secrets = passing.secrets.clone();
    note_headers(&parts.headers, &mut secrets);
    let mut head = Piece::new(PieceKind::Response, passing.id.as_str());
    head.after = Some(passing.after());
    head.status = Some(parts.status.as_u16());
    head.headers = redacted_headers(&parts.headers, &secrets);
    head.decoded = passing.decoder.is_some().then(|| coding.into());
    passing.fate = passing.record(&[head]);
    remove_hop_by_hop(&mut parts.headers);
    Response::from_parts(parts, Tee::new(body, passing).boxed_unsync())
}

/// A body on its way up, and the bytes of it that are recorded.
struct Collected {
    body: Body,
    kept: Option<Bytes>,
}

/// Text is taken whole, because APIs do so too; anything else flows through.
async fn collected(headers: &HeaderMap, body: Incoming) -> Result<Collected, hyper::Error> {
    let kind = headers.get(CONTENT_TYPE).map_or("", |kind| kind.to_str().unwrap_or_default());
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let is_text = kind.is_empty() || kind.contains("json") || kind.starts_with("text/");
    if !is_text || length.is_some_and(|length: u64| length > MOST) {
        return Ok(Collected { body: body.map_err(BodyError::from).boxed_unsync(), kept: None });
    }
    let bytes = body.collect().await?.to_bytes();
    let body = Full::new(bytes.clone()).map_err(|never| match never {}).boxed_unsync();
    Ok(Collected { body, kept: Some(bytes) })
}

/// Remembers the secrets in headers.
fn note_headers(headers: &HeaderMap, secrets: &mut TrafficSecrets) {
    headers
        .iter()
        .for_each(|(name, value)| secrets.note_header(name.as_str(), &header_text(value)));
}

/// Headers as they came.
fn headers_of(headers: &HeaderMap) -> Headers {
    let pair = |(name, value): (&HeaderName, &HeaderValue)| (name.to_string(), header_text(value));
    headers.iter().map(pair).collect()
}

/// Headers as they are recorded.
fn redacted_headers(headers: &HeaderMap, secrets: &TrafficSecrets) -> Headers {
    let redacted = |(name, value): (&HeaderName, &HeaderValue)| {
        (name.as_str().to_owned(), secrets.redact_header(name.as_str(), &header_text(value)))
    };
    headers.iter().map(redacted).collect()
}

fn header_text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// How a body is compressed; empty if it is not.
pub(crate) fn content_encoding(headers: &HeaderMap) -> String {
    headers.get(CONTENT_ENCODING).map(header_text).unwrap_or_default()
}

fn readdress(parts: &mut Parts, uri: Uri) {
    remove_hop_by_hop(&mut parts.headers);
    let host = uri.authority().and_then(|authority| authority.as_str().parse().ok());
    if let Some(host) = host {
        parts.headers.insert(HOST, host);
    }
    parts.uri = uri;
    parts.version = hyper::Version::HTTP_11;
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named = headers.get_all("connection").iter().filter_map(|value| value.to_str().ok());
    let named: Vec<HeaderName> = named
        .flat_map(|names| names.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    named.iter().for_each(|name| drop(headers.remove(name)));
    HOP_BY_HOP.iter().for_each(|name| drop(headers.remove(*name)));
}
