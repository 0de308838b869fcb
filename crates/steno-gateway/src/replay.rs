//! Answers requests with recorded responses, in place of the model.
//!
//! A request is matched by its API and its new messages: those after the model's last one. Requests with equal content
//! get the recorded responses in their recorded order.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Request, Response, StatusCode};
use steno_agents::protocols::traffic::secrets::TrafficSecrets;
use steno_agents::protocols::traffic::{ApiExchange, IncomingRequest, RequestFingerprint};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::body::{BodyError, BoxedBody};
use crate::gateway::{BoundAddress, GatewayError};
use crate::guard::OriginGuard;
use crate::http_headers::{header_text, note_header_secrets};
use crate::locking::lock_unpoisoned;
use crate::redacted_body::RedactedBody;
use crate::refusal::error_response;
use crate::request_body::BodyKind;
use crate::server::{self, RequestHandler};

/// Headers that the server writes itself, and headers without a recorded value.
const OMITTED_HEADERS: [&str; 4] = ["connection", "keep-alive", "transfer-encoding", "set-cookie"];

/// Options of a replay server.
#[derive(Clone, Copy, Debug)]
pub struct ReplayOptions {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Whether to refuse unrecorded requests, and to use each response only once.
    pub strict: bool,
}

/// A running replay server.
#[derive(Debug)]
pub struct ReplayServer {
    address: SocketAddr,
    runtime: Runtime,
}

impl ReplayServer {
    /// Starts to answer requests with `exchanges`.
    pub fn start(
        options: ReplayOptions,
        exchanges: Vec<ApiExchange>,
    ) -> Result<Self, GatewayError> {
        let BoundAddress { runtime, listener, address } = BoundAddress::bind(options.listen)?;
        let handler = ReplayHandler {
            guard: OriginGuard::new(address),
            tape: Mutex::new(ReplayTape::new(exchanges, options.strict)),
        };
        runtime.spawn(server::serve_listener(listener, Arc::new(handler)));
        Ok(Self { address, runtime })
    }

    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the server.
    pub fn stop(self) {
        self.runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

struct ReplayHandler {
    guard: OriginGuard,
    tape: Mutex<ReplayTape>,
}

impl RequestHandler for ReplayHandler {
    async fn handle_request(self: Arc<Self>, request: Request<Incoming>) -> Response<BoxedBody> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
        if let Some(reason) = self.guard.refusal_reason(request.headers()) {
            return error_response(&path, StatusCode::FORBIDDEN, reason);
        }
        let method = request.method().as_str().to_owned();
        let kind = BodyKind::from_headers(request.headers());
        let content_type = request.headers().get(CONTENT_TYPE).map(header_text).unwrap_or_default();
        let mut secrets = TrafficSecrets::default();
        note_header_secrets(request.headers(), &mut secrets);
        secrets.remember_path(&path);
        let Ok(body) = request.into_body().collect().await else {
            return error_response(
                &path,
                StatusCode::BAD_REQUEST,
                "the request body could not be read",
            );
        };
        let body = body.to_bytes();
        // Recorded requests are redacted, so only a redacted request can match.
        let clean = RedactedBody::new(secrets, &kind, &body);
        let (content_type, sent) = (content_type.as_str(), &body[..]);
        let request = IncomingRequest {
            method: &method,
            path: &path,
            content_type,
            body: &clean.bytes,
            sent_body: sent,
        };
        let question = RequestFingerprint::new(request);
        let exchange = lock_unpoisoned(&self.tape).find_exchange(&question);
        match exchange {
            Some(exchange) => {
                tokio::time::sleep(Duration::from_micros(exchange.head_micros)).await;
                replay_response(exchange)
            }
            None => {
                let reason =
                    format!("no recorded response for {method} {path} with these new messages");
                error_response(&path, StatusCode::NOT_FOUND, &reason)
            }
        }
    }
}

/// The recorded exchanges, and which of them were used.
struct ReplayTape {
    exchanges: Vec<TapedExchange>,
    strict: bool,
}

struct TapedExchange {
    question: RequestFingerprint,
    exchange: Arc<ApiExchange>,
    is_used: bool,
}

impl ReplayTape {
    fn new(exchanges: Vec<ApiExchange>, strict: bool) -> Self {
        // An exchange without a response cannot be replayed.
        let answered = exchanges.into_iter().filter(|exchange| exchange.status.is_some());
        let taped = answered.map(|exchange| {
            let question = RequestFingerprint::from_exchange(&exchange);
            TapedExchange { question, exchange: Arc::new(exchange), is_used: false }
        });
        Self { exchanges: taped.collect(), strict }
    }

    /// The first unused exchange with the same question. Unless `strict`, else the last one with that question, or the
    /// next unused one of the same API.
    fn find_exchange(&mut self, question: &RequestFingerprint) -> Option<Arc<ApiExchange>> {
        let is_same = |taped: &TapedExchange| taped.question == *question;
        let unused = self.exchanges.iter().position(|taped| !taped.is_used && is_same(taped));
        let index = unused.or_else(|| {
            let again = self.exchanges.iter().rposition(is_same);
            let next = || {
                let mut all = self.exchanges.iter();
                all.position(|taped| !taped.is_used && taped.question.has_same_shape(question))
            };
            again.or_else(next).filter(|_| !self.strict)
        })?;
        let taped = &mut self.exchanges[index];
        taped.is_used = true;
        Some(Arc::clone(&taped.exchange))
    }
}

/// The response as recorded, with its pauses.
fn replay_response(exchange: Arc<ApiExchange>) -> Response<BoxedBody> {
    let (sender, frames) = mpsc::channel(1);
    tokio::spawn(send_chunks(Arc::clone(&exchange), sender));
    let mut response = Response::new(PlaybackBody { frames }.boxed_unsync());
    let status = exchange.status.and_then(|status| StatusCode::from_u16(status).ok());
    *response.status_mut() = status.unwrap_or(StatusCode::OK);
    for (name, value) in &exchange.headers {
        let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value))
        else {
            continue;
        };
        if !OMITTED_HEADERS.contains(&name.as_str()) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// Sends the recorded chunks, each at its recorded time.
async fn send_chunks(exchange: Arc<ApiExchange>, sender: mpsc::Sender<PlayedFrame>) {
    let began = tokio::time::Instant::now();
    for (after, bytes) in &exchange.chunks {
        let due = after.saturating_sub(exchange.head_micros);
        tokio::time::sleep_until(began + Duration::from_micros(due)).await;
        if sender.send(Ok(Frame::data(Bytes::copy_from_slice(bytes)))).await.is_err() {
            return;
        }
    }
    let trailers = exchange.trailers.iter().filter_map(|(name, value)| {
        Some((name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value).ok()?))
    });
    let trailers: HeaderMap = trailers.collect();
    if !trailers.is_empty() {
        let _ = sender.send(Ok(Frame::trailers(trailers))).await;
    }
    if !exchange.has_complete_response() {
        // The recorded response was cut, so the connection is closed early here too.
        let _ = sender.send(Err("the recorded response ends here".into())).await;
    }
}

type PlayedFrame = Result<Frame<Bytes>, BodyError>;

/// The body of a replayed response.
struct PlaybackBody {
    frames: mpsc::Receiver<PlayedFrame>,
}

impl hyper::body::Body for PlaybackBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.frames.poll_recv(context)
    }
}
