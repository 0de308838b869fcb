//! Starts the record of an exchange: its request, and the head of its response.

use std::time::Instant;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Request, Response, Uri};
use steno_agents::protocols::traffic::TrafficPiece;
use steno_agents::protocols::traffic::body_decoder::BodyDecoder;
use steno_agents::protocols::traffic::body_format::BodyFormat;
use steno_agents::protocols::traffic::body_meter::BodyMeter;
use steno_agents::protocols::traffic::piece::TrafficPieceKind;
use steno_model::{Clock, Timestamp};

use crate::body::BoxedBody;
use crate::exchange_recorder::ExchangeRecorder;
use crate::http_headers::{
    content_encoding, note_header_secrets, received_headers, redacted_headers, remove_hop_by_hop,
};
use crate::recorded_body::RecordedBody;
use crate::redacted_body::RedactedBody;
use crate::request_body::{BodyKind, RequestBody};
use crate::sessions::SessionRecorders;
use crate::upstream::Upstream;
use crate::upstream_clients::UpstreamClients;

/// What all exchanges of a gateway share.
pub(crate) struct ExchangeContext {
    pub(crate) clients: UpstreamClients,
    pub(crate) sessions: SessionRecorders,
    pub(crate) clock: Clock,
    /// How many bytes of a body are recorded.
    pub(crate) body_limit: u64,
}

/// A request, and where it goes.
pub(crate) struct RoutedRequest<'a> {
    pub(crate) upstream: &'a Upstream,
    pub(crate) uri: Uri,
    pub(crate) request: Request<Incoming>,
}

/// A request without its body.
pub(crate) struct RequestHead<'a> {
    pub(crate) upstream: &'a Upstream,
    /// Where the request is sent.
    pub(crate) uri: &'a Uri,
    pub(crate) parts: &'a Parts,
}

impl ExchangeContext {
    /// Records a request. A partly read body is recorded while it is forwarded.
    pub(crate) fn begin_exchange(
        &self,
        head: &RequestHead<'_>,
        kind: &BodyKind,
        body: &RequestBody,
    ) -> PendingExchange {
        let (began, at) = (Instant::now(), self.clock.now());
        let headers = received_headers(&head.parts.headers);
        let recorder = self.sessions.recorder_for(&headers, &body.prefix);
        let mut recorder = ExchangeRecorder::new(recorder, at, began, self.body_limit);
        let request = ReceivedRequest { at, head, kind, body };
        request.record_to(&mut recorder, self.body_limit);
        PendingExchange { recorder: Some(recorder) }
    }
}

/// A request as it came.
struct ReceivedRequest<'a> {
    at: Timestamp,
    head: &'a RequestHead<'a>,
    kind: &'a BodyKind,
    body: &'a RequestBody,
}

impl ReceivedRequest<'_> {
    /// Records the request without its secrets, and has the recorder look for them from then on.
    fn record_to(&self, recorder: &mut ExchangeRecorder, body_limit: u64) {
        let RequestHead { upstream, uri, parts } = *self.head;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut secrets = std::mem::take(&mut recorder.secrets);
        note_header_secrets(&parts.headers, &mut secrets);
        secrets.remember_path(path);
        let is_whole = self.body.is_whole();
        let body = if is_whole { &self.body.prefix[..] } else { &[] };
        let mut meter = BodyMeter::new(body_limit, &self.kind.fields);
        let redacted = RedactedBody::new(secrets, self.kind, meter.update(body));
        let secrets = redacted.secrets;
        let mut piece = TrafficPiece::new(TrafficPieceKind::Request, recorder.id.as_str());
        piece.redactions = redacted.redactions;
        piece.at = Some(self.at);
        piece.method = Some(parts.method.as_str().into());
        piece.upstream = Some(upstream.name.as_str().into());
        piece.path = Some(secrets.redact_path(path).into());
        piece.headers = redacted_headers(&parts.headers, &secrets);
        piece.decoded = redacted.is_decoded.then(|| self.kind.coding.as_str().into());
        piece.is_uploaded = !is_whole;
        let measured = meter.finish();
        let has_parts = self.kind.fields != BodyFormat::Json;
        // The hash of bytes that hold a secret could give the secret away.
        let is_measured = measured.omitted > 0 || (has_parts && piece.redactions == 0);
        if is_whole && is_measured {
            piece = piece.with_measured_body(measured);
        }
        let mut pieces = vec![if is_whole { piece.with_bytes(&redacted.bytes) } else { piece }];
        if !self.body.trailers.is_empty() {
            let mut end = TrafficPiece::new(TrafficPieceKind::UploadEnd, recorder.id.as_str());
            end.headers = redacted_headers(&self.body.trailers, &secrets);
            pieces.push(end);
        }
        let extent = recorder.append_pieces(&pieces);
        (recorder.extent, recorder.secrets) = (extent, secrets);
    }
}

/// An exchange that waits for its response. Records an error if the client closes the connection first.
pub(crate) struct PendingExchange {
    recorder: Option<ExchangeRecorder>,
}

impl PendingExchange {
    pub(crate) fn recorder(&self) -> &ExchangeRecorder {
        self.recorder.as_ref().expect("only `into_recorder` takes it")
    }

    pub(crate) fn into_recorder(mut self) -> ExchangeRecorder {
        self.recorder.take().expect("only `into_recorder` takes it")
    }
}

impl Drop for PendingExchange {
    fn drop(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.record_end(Some("the client closed the connection before the response"));
        }
    }
}

/// Records the head of a response; its body is recorded while it is forwarded.
pub(crate) fn record_response(
    response: Response<Incoming>,
    mut recorder: ExchangeRecorder,
) -> Response<BoxedBody> {
    let coding = content_encoding(response.headers());
    recorder.decoder = BodyDecoder::new(&coding);
    let head = response_head(&response, &recorder);
    let decoded = recorder.decoder.is_some().then(|| coding.into());
    recorder.extent = recorder.append_pieces(&[TrafficPiece { decoded, ..head }]);
    let (mut parts, body) = response.into_parts();
    remove_hop_by_hop(&mut parts.headers);
    Response::from_parts(parts, RecordedBody::new(body, recorder).boxed_unsync())
}

/// The head of a response, as recorded.
pub(crate) fn response_head(
    response: &Response<Incoming>,
    recorder: &ExchangeRecorder,
) -> TrafficPiece<'static> {
    // A secret in a response's header, such as a cookie, does not come again in its body.
    let mut secrets = recorder.secrets.clone();
    note_header_secrets(response.headers(), &mut secrets);
    let mut head = TrafficPiece::new(TrafficPieceKind::Response, recorder.id.clone());
    head.after = Some(recorder.elapsed_micros());
    head.status = Some(response.status().as_u16());
    head.headers = redacted_headers(response.headers(), &secrets);
    head
}
