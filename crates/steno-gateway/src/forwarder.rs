//! Forwards requests to upstreams and responses to clients: recorded, or not.

use std::sync::Arc;
use std::time::Instant;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode, Uri};
use steno_agents::protocols::traffic::TrafficPiece;
use steno_agents::protocols::traffic::piece::TrafficPieceKind;
use steno_agents::protocols::traffic::secrets::TrafficSecrets;

use crate::body::{BodyError, BoxedBody, error_chain_text};
use crate::delivery::deliver_response;
use crate::exchange::{ExchangeContext, RequestHead, RoutedRequest, record_response};
use crate::exchange_recorder::{ExchangeRecorder, elapsed_micros};
use crate::http_headers::{redacted_headers, retarget_request};
use crate::recording::TrafficRecorder;
use crate::refusal::{error_response, unreachable_upstream};
use crate::request_body::{BodyKind, RequestBody};
use crate::upload::UploadRecorder;
use crate::websocket::{forward_websocket, is_websocket_request};

/// Forwards a request, and records it and its response.
pub(crate) async fn forward_recorded(
    context: &ExchangeContext,
    routed: RoutedRequest<'_>,
) -> Response<BoxedBody> {
    if is_websocket_request(&routed.request) {
        return forward_websocket(context, routed).await;
    }
    let RoutedRequest { upstream, uri, request } = routed;
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let kind = BodyKind::from_headers(&parts.headers);
    let body = match RequestBody::collect(&kind, body).await {
        Ok(body) => body,
        Err(error) => {
            return error_response(&path, StatusCode::BAD_REQUEST, &error_chain_text(&error));
        }
    };
    let head = RequestHead { upstream, uri: &uri, parts: &parts };
    let pending = context.begin_exchange(&head, &kind, &body);
    let upload = UploadRecorder::new(pending.recorder(), &kind, context.body_limit);
    let informational = InformationalRecorder::new(pending.recorder());
    retarget_request(&mut parts, uri);
    let mut request = Request::from_parts(parts, body.into_body(upload));
    informational.attach_to(&mut request);
    let (client, slot) = context.clients.take_client();
    let response = client.request(request).await;
    let mut recorder = pending.into_recorder();
    match response {
        Ok(response) => deliver_response(record_response(response, recorder), slot),
        Err(error) => {
            let reason = error_chain_text(&error);
            recorder.record_end(Some(&reason));
            unreachable_upstream(&path, &upstream.origin, &reason)
        }
    }
}

/// Forwards a request without recording it.
pub(crate) async fn forward_unrecorded(
    context: &ExchangeContext,
    uri: Uri,
    request: Request<Incoming>,
) -> Response<BoxedBody> {
    let (mut parts, body) = request.into_parts();
    retarget_request(&mut parts, uri);
    let request = Request::from_parts(parts, body.map_err(BodyError::from).boxed_unsync());
    let (client, slot) = context.clients.take_client();
    match client.request(request).await {
        Ok(response) => {
            let response = response.map(|body| body.map_err(BodyError::from).boxed_unsync());
            deliver_response(response, slot)
        }
        Err(error) => error_response("/", StatusCode::BAD_GATEWAY, &error_chain_text(&error)),
    }
}

/// Records informational responses, such as `103 Early Hints`.
struct InformationalRecorder {
    recorder: Arc<TrafficRecorder>,
    id: String,
    began: Instant,
    secrets: TrafficSecrets,
}

impl InformationalRecorder {
    fn new(exchange: &ExchangeRecorder) -> Self {
        let (recorder, id) = (Arc::clone(&exchange.recorder), exchange.id.clone());
        Self { recorder, id, began: exchange.began, secrets: exchange.secrets.clone() }
    }

    fn attach_to(self, request: &mut Request<BoxedBody>) {
        hyper::ext::on_informational(request, move |response| {
            let mut piece = TrafficPiece::new(TrafficPieceKind::Informational, self.id.as_str());
            piece.after = Some(elapsed_micros(self.began));
            piece.status = Some(response.status().as_u16());
            piece.headers = redacted_headers(response.headers(), &self.secrets);
            self.recorder.append(0, &[piece]);
        });
    }
}
