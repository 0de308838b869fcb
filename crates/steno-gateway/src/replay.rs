//! ReplayHandler requests with what was recorded, as if the model were there.
//!
//! A request is told by its API and by what is new in it: all that follows the model's last words. Those of the same
//! content are answered in the order in which they were recorded.

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
use steno_core::traffic::secrets::TrafficSecrets;
use steno_core::traffic::{AskedRequest, Exchange, Question};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::body::{BodyError, BoxedBody};
use crate::gateway::{Bound, GatewayError};
use crate::guard::OriginGuard;
use crate::http_headers::{header_text, note_header_secrets};
use crate::locking::lock_unpoisoned;
use crate::redacted_body::RedactedBody;
use crate::refusal::refusal;
use crate::request_body::BodyKind;
use crate::server::{self, RequestHandler};

/// Headers that the server writes itself, and those of which nothing was kept.
const LEFT_OUT: [&str; 4] = ["connection", "keep-alive", "transfer-encoding", "set-cookie"];

/// What a replay is to do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Whether only what was recorded is answered, and each answer is given once.
    pub strict: bool,
}

/// A replay under way.
#[derive(Debug)]
pub struct Replay {
    address: SocketAddr,
    runtime: Runtime,
}

impl Replay {
    /// Starts to answer with `exchanges`.
    pub fn start(options: Options, exchanges: Vec<Exchange>) -> Result<Self, GatewayError> {
        let Bound { runtime, listener, address } = Bound::new(options.listen)?;
        let handler = ReplayHandler {
            guard: OriginGuard::new(address),
            tape: Mutex::new(ReplayTape::new(exchanges, options.strict)),
        };
        runtime.spawn(server::serve(listener, Arc::new(handler)));
        Ok(Self { address, runtime })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it.
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
            return refusal(&path, StatusCode::FORBIDDEN, reason);
        }
        let method = request.method().as_str().to_owned();
        let kind = BodyKind::from_headers(request.headers());
        let content_type = request.headers().get(CONTENT_TYPE).map(header_text).unwrap_or_default();
        let mut secrets = TrafficSecrets::default();
        note_header_secrets(request.headers(), &mut secrets);
        secrets.note_path(&path);
        let Ok(body) = request.into_body().collect().await else {
            return refusal(&path, StatusCode::BAD_REQUEST, "the request has no end");
        };
        let body = body.to_bytes();
        // The record has no secrets either.
        let clean = RedactedBody::new(secrets, &kind, &body);
        let (content_type, sent) = (content_type.as_str(), &body[..]);
        let asked =
            AskedRequest { method: &method, path: &path, content_type, body: &clean.bytes, sent };
        let question = Question::new(asked);
        let found = lock_unpoisoned(&self.tape).find(&question);
        match found {
            Some(exchange) => {
                tokio::time::sleep(Duration::from_micros(exchange.head_after)).await;
                replayed(exchange)
            }
            None => {
                let reason = format!("not in the record: {method} {path} with these new messages");
                refusal(&path, StatusCode::NOT_FOUND, &reason)
            }
        }
    }
}

/// The recorded exchanges, and which of them were given.
struct ReplayTape {
    exchanges: Vec<(Question, Arc<Exchange>, bool)>,
    strict: bool,
}

impl ReplayTape {
    fn new(exchanges: Vec<Exchange>, strict: bool) -> Self {
        // One that upstream never answered has nothing to say.
        let answered = exchanges.into_iter().filter(|exchange| exchange.status.is_some());
        let questions =
            answered.map(|exchange| (Question::of(&exchange), Arc::new(exchange), false));
        Self { exchanges: questions.collect(), strict }
    }

    /// The first that was not given yet and asks the same; else, unless that is not enough, the last that was given, or
    /// the next of the same API.
    fn find(&mut self, question: &Question) -> Option<Arc<Exchange>> {
        let same = |(asked, ..): &(Question, _, _)| asked == question;
        let fresh = self.exchanges.iter().position(|item| !item.2 && same(item));
        let found = fresh.or_else(|| {
            let again = self.exchanges.iter().rposition(same);
            let next =
                || self.exchanges.iter().position(|item| !item.2 && item.0.is_like(question));
            again.or_else(next).filter(|_| !self.strict)
        })?;
        self.exchanges[found].2 = true;
        Some(Arc::clone(&self.exchanges[found].1))
    }
}

/// The answer as it was recorded, with its pauses.
fn replayed(exchange: Arc<Exchange>) -> Response<BoxedBody> {
    let (sender, frames) = mpsc::channel(1);
    tokio::spawn(play(Arc::clone(&exchange), sender));
    let mut response = Response::new(Playback { frames }.boxed_unsync());
    let status = exchange.status.and_then(|status| StatusCode::from_u16(status).ok());
    *response.status_mut() = status.unwrap_or(StatusCode::OK);
    for (name, value) in &exchange.headers {
        let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value))
        else {
            continue;
        };
        if !LEFT_OUT.contains(&name.as_str()) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// Sends what was recorded, each chunk when it is due.
async fn play(exchange: Arc<Exchange>, sender: mpsc::Sender<Played>) {
    let began = tokio::time::Instant::now();
    for (after, bytes) in &exchange.chunks {
        let due = after.saturating_sub(exchange.head_after);
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
    if !exchange.has_whole_answer() {
        // The connection is closed before the answer is whole, as it was then.
        let _ = sender.send(Err("the record ends here".into())).await;
    }
}

type Played = Result<Frame<Bytes>, BodyError>;

/// A body that is being played.
struct Playback {
    frames: mpsc::Receiver<Played>,
}

impl hyper::body::Body for Playback {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.frames.poll_recv(context)
    }
}
