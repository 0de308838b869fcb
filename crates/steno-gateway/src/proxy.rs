//! Passes requests on to upstream and answers back, and records both.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, HOST, HeaderMap, HeaderName, HeaderValue, TE};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode, Uri};
use steno_core::traffic::Piece;
use steno_core::traffic::body_meter::BodyMeter;
use steno_core::traffic::decoder::BodyDecoder;
use steno_core::traffic::form_body::BodyFields;
use steno_core::traffic::piece::{Headers, PieceKind};
use steno_core::traffic::secrets::TrafficSecrets;
use steno_core::{Clock, Timestamp};
use uuid::Uuid;

use crate::connect::UpstreamClients;
use crate::forward::ForwardProxy;
use crate::guard::Guard;
use crate::recording::TrafficRecorder;
use crate::refusal::refusal;
use crate::server::{Answer, Body, BodyError};
use crate::sessions::SessionRecorders;
use crate::tee::{ExchangeFate, Passing, Tee, reason};
use crate::upload::{BodyKind, RequestBody, UploadRecorder, UploadingExchange};
use crate::upstream::{Upstream, Upstreams};
use crate::websocket::is_websocket_request;

/// Headers that are between two neighbours only. `trailer` is not among them: what it announces is passed on.
const HOP_BY_HOP: [&str; 7] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// What the gateway does with each request.
pub(crate) struct Proxy {
    pub(crate) clients: UpstreamClients,
    pub(crate) upstreams: Upstreams,
    pub(crate) guard: Guard,
    pub(crate) sessions: SessionRecorders,
    pub(crate) clock: Clock,
    /// How many bytes of a body are recorded.
    pub(crate) body_limit: u64,
    /// What it needs to be a forward proxy too.
    pub(crate) forward: Option<ForwardProxy>,
}

impl Proxy {
    /// Records a request and sends it on.
    pub(crate) async fn pass(
        &self,
        upstream: &Upstream,
        uri: Uri,
        request: Request<Incoming>,
    ) -> Response<Body> {
        if is_websocket_request(&request) {
            return self.pass_websocket(upstream, uri, request).await;
        }
        let (mut parts, body) = request.into_parts();
        let asked = parts.uri.path().to_owned();
        let kind = BodyKind::of_headers(&parts.headers);
        let body = match RequestBody::collect(&kind, body).await {
            Ok(body) => body,
            Err(error) => return refusal(&asked, StatusCode::BAD_REQUEST, &reason(&error)),
        };
        let exchange = ExchangeHead { upstream, uri: &uri, parts: &parts };
        let unanswered = self.begin_exchange(&exchange, &kind, &body);
        let upload = UploadRecorder::new(unanswered.uploading(), &kind, self.body_limit);
        let informed = InformationalRecorder::new(unanswered.passing());
        readdress(&mut parts, uri);
        let mut request = Request::from_parts(parts, body.into_body(upload));
        informed.listen(&mut request);
        let (asker, place) = self.clients.take();
        let answer = asker.request(request).await;
        let mut passing = unanswered.answered();
        match answer {
            Ok(answer) => place.held_by(answered(answer, passing)),
            Err(error) => {
                let reason = reason(&error);
                passing.end(Some(&reason));
                let message = format!("the gateway could not reach {}: {reason}", upstream.origin);
                refusal(&asked, StatusCode::BAD_GATEWAY, &message)
            }
        }
    }

    /// Records what is asked, and waits for the answer.
    pub(crate) fn begin_exchange(
        &self,
        head: &ExchangeHead<'_>,
        kind: &BodyKind,
        body: &RequestBody,
    ) -> Unanswered {
        let (began, at) = (Instant::now(), self.clock.now());
        let id = Uuid::now_v7().simple().to_string();
        let ExchangeHead { upstream, uri, parts } = *head;
        let recording = self.sessions.recorder_for(&headers_of(&parts.headers), &body.begun);
        let fate = ExchangeFate::Recorded;
        let secrets = TrafficSecrets::default();
        let (decoder, filter, trailers) = (None, None, Headers::new());
        let meter = BodyMeter::new(self.body_limit, &BodyFields::Json);
        let mut passing =
            Passing { recording, fate, id, began, secrets, decoder, filter, meter, trailers };
        record(&mut passing, &Asked { at, upstream, uri, parts, kind, body }, self.body_limit);
        Unanswered { passing: Some(passing) }
    }
}

/// What is known of a request before its body.
pub(crate) struct ExchangeHead<'a> {
    pub(crate) upstream: &'a Upstream,
    /// Where it is sent.
    pub(crate) uri: &'a Uri,
    pub(crate) parts: &'a Parts,
}

/// A request on its way up.
struct Asked<'a> {
    at: Timestamp,
    upstream: &'a Upstream,
    uri: &'a Uri,
    parts: &'a Parts,
    kind: &'a BodyKind,
    body: &'a RequestBody,
}

/// Records what is asked, without its secrets, which are known from then on. A body that is not whole follows.
fn record(passing: &mut Passing, asked: &Asked<'_>, body_limit: u64) {
    let path = asked.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut secrets = std::mem::take(&mut passing.secrets);
    note_headers(&asked.parts.headers, &mut secrets);
    secrets.note_path(path);
    let is_whole = asked.body.is_whole();
    let body = if is_whole { &asked.body.begun[..] } else { &[] };
    let mut meter = BodyMeter::new(body_limit, &asked.kind.fields);
    let clean = CleanBody::new(secrets, asked.kind, meter.take(body));
    let mut piece = Piece::new(PieceKind::Request, passing.id.as_str());
    piece.redactions = clean.redactions;
    // With what its fields hold.
    let secrets = clean.secrets;
    piece.at = Some(asked.at);
    piece.method = Some(asked.parts.method.as_str().into());
    piece.upstream = Some(asked.upstream.name.as_str().into());
    piece.path = Some(secrets.redact_path(path).into());
    piece.headers = redacted_headers(&asked.parts.headers, &secrets);
    piece.decoded = clean.is_decoded.then(|| asked.kind.coding.as_str().into());
    piece.is_uploaded = !is_whole;
    let measured = meter.finish();
    let has_parts = asked.kind.fields != BodyFields::Json;
    // The hash of what holds a secret could give that away.
    let is_stated = measured.omitted > 0 || (has_parts && piece.redactions == 0);
    if is_whole && is_stated {
        piece = piece.with_measure(measured);
    }
    let mut pieces = vec![if is_whole { piece.with_bytes(&clean.bytes) } else { piece }];
    if !asked.body.trailers.is_empty() {
        let mut end = Piece::new(PieceKind::UploadEnd, passing.id.as_str());
        end.headers = redacted_headers(&asked.body.trailers, &secrets);
        pieces.push(end);
    }
    let fate = passing.record(&pieces);
    (passing.fate, passing.secrets) = (fate, secrets);
}

/// A body as it is recorded: decompressed, and without secrets.
pub(crate) struct CleanBody {
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_decoded: bool,
    redactions: u64,
    secrets: TrafficSecrets,
}

impl CleanBody {
    pub(crate) fn new(mut secrets: TrafficSecrets, kind: &BodyKind, body: &[u8]) -> Self {
        let decoded = BodyDecoder::decode_all(&kind.coding, body);
        let is_decoded = decoded.is_some();
        let mut bytes = Cow::Borrowed(decoded.as_deref().unwrap_or(body));
        let mut redactions = 0;
        if kind.fields == BodyFields::Form {
            let (form, count) = secrets.redact_form(&bytes);
            (bytes, redactions) = (Cow::Owned(form), count);
        }
        let mut filter = secrets.filter_fields(&kind.fields);
        let mut clean = filter.push(&bytes);
        clean.extend(filter.finish());
        redactions += filter.redactions();
        Self { bytes: clean, is_decoded, redactions, secrets: filter.into_secrets() }
    }
}

/// Records answers that only announce another one, such as `103 Early Hints`.
struct InformationalRecorder {
    recording: Arc<TrafficRecorder>,
    id: String,
    began: Instant,
    secrets: TrafficSecrets,
}

impl InformationalRecorder {
    fn new(passing: &Passing) -> Self {
        let (recording, id) = (Arc::clone(&passing.recording), passing.id.clone());
        Self { recording, id, began: passing.began, secrets: passing.secrets.clone() }
    }

    fn listen(self, request: &mut Request<Body>) {
        hyper::ext::on_informational(request, move |answer| {
            let mut piece = Piece::new(PieceKind::Informational, self.id.as_str());
            piece.after = Some(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX));
            piece.status = Some(answer.status().as_u16());
            piece.headers = redacted_headers(answer.headers(), &self.secrets);
            self.recording.append(0, &[piece]);
        });
    }
}

impl Answer for Proxy {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let asked = request.uri().path().to_owned();
        if request.method() == Method::CONNECT {
            return self.connect(request);
        }
        if let Some(forward) = self.forward.as_ref().filter(|_| request.uri().host().is_some()) {
            return self.forward_plain(forward, request).await;
        }
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
pub(crate) struct Unanswered {
    passing: Option<Passing>,
}

impl Unanswered {
    fn passing(&self) -> &Passing {
        self.passing.as_ref().expect("it is taken at the end")
    }

    fn uploading(&self) -> UploadingExchange<'_> {
        self.passing().uploading()
    }

    pub(crate) fn answered(mut self) -> Passing {
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
pub(crate) fn answered(answer: Response<Incoming>, mut passing: Passing) -> Response<Body> {
    let coding = content_encoding(answer.headers());
    passing.decoder = BodyDecoder::new(&coding);
    let head = recorded_head(&answer, &passing);
    let decoded = passing.decoder.is_some().then(|| coding.into());
    passing.fate = passing.record(&[Piece { decoded, ..head }]);
    let (mut parts, body) = answer.into_parts();
    remove_hop_by_hop(&mut parts.headers);
    Response::from_parts(parts, Tee::new(body, passing).boxed_unsync())
}

/// The head of an answer, as it is recorded.
pub(crate) fn recorded_head(answer: &Response<Incoming>, passing: &Passing) -> Piece<'static> {
    // What upstream sets may be a secret too, but is not one that it would repeat.
    let mut secrets = passing.secrets.clone();
    note_headers(answer.headers(), &mut secrets);
    let mut head = Piece::new(PieceKind::Response, passing.id.clone());
    head.after = Some(passing.after());
    head.status = Some(answer.status().as_u16());
    head.headers = redacted_headers(answer.headers(), &secrets);
    head
}

/// Remembers the secrets in headers.
pub(crate) fn note_headers(headers: &HeaderMap, secrets: &mut TrafficSecrets) {
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
pub(crate) fn redacted_headers(headers: &HeaderMap, secrets: &TrafficSecrets) -> Headers {
    let redacted = |(name, value): (&HeaderName, &HeaderValue)| {
        (name.as_str().to_owned(), secrets.redact_header(name.as_str(), &header_text(value)))
    };
    headers.iter().map(redacted).collect()
}

pub(crate) fn header_text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// How a body is compressed; empty if it is not.
pub(crate) fn content_encoding(headers: &HeaderMap) -> String {
    headers.get(CONTENT_ENCODING).map(header_text).unwrap_or_default()
}

/// A request that is passed on unread.
pub(crate) fn prepare_forward(request: Request<Incoming>, uri: Uri) -> Request<Body> {
    let (mut parts, body) = request.into_parts();
    readdress(&mut parts, uri);
    Request::from_parts(parts, body.map_err(BodyError::from).boxed_unsync())
}

/// Turns a request to us into one to `uri`.
pub(crate) fn readdress(parts: &mut Parts, uri: Uri) {
    let te = parts.headers.get(TE).map(header_text).unwrap_or_default();
    remove_hop_by_hop(&mut parts.headers);
    // That the client can read trailers is true of us too.
    if te.split(',').any(|coding| coding.trim().eq_ignore_ascii_case("trailers")) {
        parts.headers.insert(TE, HeaderValue::from_static("trailers"));
    }
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
