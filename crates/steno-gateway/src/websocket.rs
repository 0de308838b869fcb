//! WebSocket connections on their way through the gateway: bytes pass as they are, and each message is recorded before the
//! last of its bytes is passed on.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use steno_core::traffic::piece::PieceKind;
use steno_core::traffic::socket_audio::leave_out_audio;
use steno_core::traffic::{Dialect, Piece};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::proxy::{ExchangeHead, Proxy, answered, readdress, recorded_head};
use crate::refusal::refusal;
use crate::server::Body;
use crate::sessions::lock;
use crate::tee::{ExchangeFate, Passing, reason};
use crate::upload::{BodyKind, RequestBody};
use crate::upstream::Upstream;
use crate::websocket_frames::{Compression, MessageReader, SocketMessage};

/// How much is read at once.
const BUFFER_SIZE: usize = 16 << 10;

/// How long one side may take to close after the other has.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a request asks to go on as a WebSocket.
pub(crate) fn is_websocket_request(request: &Request<Incoming>) -> bool {
    let has = |name, wanted: &str| {
        let values = request.headers().get_all(name).iter().filter_map(|value| value.to_str().ok());
        values
            .flat_map(|value| value.split(','))
            .any(|value| value.trim().eq_ignore_ascii_case(wanted))
    };
    request.version() == Version::HTTP_11
        && request.method() == Method::GET
        && has(UPGRADE, "websocket")
        && has(CONNECTION, "upgrade")
}

impl Proxy {
    /// Opens a WebSocket to upstream, and passes its messages on.
    pub(crate) async fn pass_websocket(
        &self,
        upstream: &Upstream,
        uri: Uri,
        mut request: Request<Incoming>,
    ) -> Response<Body> {
        let client = hyper::upgrade::on(&mut request);
        let (mut parts, _) = request.into_parts();
        let asked = parts.uri.path().to_owned();
        let is_realtime = Dialect::of(uri.path()) == Dialect::Realtime;
        let (kind, body) = (BodyKind::of_headers(&parts.headers), RequestBody::empty());
        let head = ExchangeHead { upstream, uri: &uri, parts: &parts };
        let unanswered = self.begin_exchange(&head, &kind, &body);
        readdress(&mut parts, uri);
        parts.headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        parts.headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        let answer = self.clients.upgradable.request(Request::from_parts(parts, empty())).await;
        let mut passing = unanswered.answered();
        match answer {
            Ok(mut answer) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => {
                let server = hyper::upgrade::on(&mut answer);
                let head = recorded_head(&answer, &passing);
                passing.fate = passing.record(&[head]);
                let socket = OpenSocket::new(passing, answer.headers(), is_realtime);
                tokio::spawn(pass_messages(socket, client, server));
                answer.map(|_| empty())
            }
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

fn empty() -> Body {
    Empty::<Bytes>::new().map_err(|never| match never {}).boxed_unsync()
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    Client,
    Upstream,
}

/// A connection that is being recorded.
struct OpenSocket {
    passing: Passing,
    from_client: MessageReader,
    from_upstream: MessageReader,
    is_realtime: bool,
    /// Whether one side has said that it closes.
    is_closing: bool,
    is_ended: bool,
}

impl OpenSocket {
    fn new(passing: Passing, headers: &HeaderMap, is_realtime: bool) -> Self {
        let agreed = headers.get("sec-websocket-extensions");
        let agreed = agreed.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let reader = |parameter: &str| {
            let mut words = agreed.split(';').map(str::trim);
            let is_deflate = words.next() == Some("permessage-deflate");
            let is_reset = words.any(|word| word.eq_ignore_ascii_case(parameter));
            MessageReader::new(is_deflate.then_some(Compression { is_reset }))
        };
        let from_client = reader("client_no_context_takeover");
        let from_upstream = reader("server_no_context_takeover");
        let (is_closing, is_ended) = (false, false);
        Self { passing, from_client, from_upstream, is_realtime, is_closing, is_ended }
    }

    /// Records the messages that are whole with these bytes.
    fn observe(&mut self, sender: Sender, bytes: &[u8]) {
        if self.passing.fate != ExchangeFate::Recorded || self.is_ended {
            return;
        }
        let reader = match sender {
            Sender::Client => &mut self.from_client,
            Sender::Upstream => &mut self.from_upstream,
        };
        let mut messages = Vec::new();
        let read = reader.push(bytes, &mut messages);
        let kept: Vec<_> = messages.into_iter().filter_map(|message| self.keep(message)).collect();
        let pieces: Vec<_> = kept.iter().map(|kept| kept.piece(sender, &self.passing)).collect();
        if !pieces.is_empty() {
            self.passing.fate = self.passing.record(&pieces);
        }
        if let Err(error) = read {
            self.end(Some(&format!("{error}; the rest was not recorded")));
        }
    }

    /// What is recorded of a message.
    fn keep(&mut self, message: SocketMessage) -> Option<KeptMessage> {
        let bytes = match message {
            SocketMessage::Close => {
                self.is_closing = true;
                return None;
            }
            SocketMessage::TooLarge(omitted) => {
                return Some(KeptMessage { omitted, ..KeptMessage::default() });
            }
            SocketMessage::Text(bytes) | SocketMessage::Binary(bytes) => bytes,
        };
        let shortened = self.is_realtime.then(|| leave_out_audio(&bytes)).flatten();
        let (bytes, omitted) = match shortened {
            Some(shortened) => (shortened.text.into_bytes(), shortened.omitted),
            None => (bytes, 0),
        };
        let mut filter = self.passing.secrets.filter();
        let mut clean = filter.push(&bytes);
        clean.extend(filter.finish());
        let redactions = filter.redactions();
        self.passing.secrets = filter.into_secrets();
        Some(KeptMessage { bytes: clean, omitted, redactions })
    }

    /// Records that one side has gone, which is an error unless it said so before.
    fn close(&mut self, what: &str, ended: std::io::Result<()>) {
        let error = match ended {
            _ if self.is_closing => None,
            Ok(()) => Some(what.to_owned()),
            Err(error) => Some(format!("{what}: {error}")),
        };
        self.end(error.as_deref());
    }

    fn end(&mut self, error: Option<&str>) {
        if !self.is_ended {
            self.is_ended = true;
            self.passing.end(error);
        }
    }
}

impl Drop for OpenSocket {
    fn drop(&mut self) {
        self.end(Some("the gateway ended"));
    }
}

/// What is recorded of a message.
#[derive(Default)]
struct KeptMessage {
    bytes: Vec<u8>,
    omitted: u64,
    redactions: u64,
}

impl KeptMessage {
    fn piece<'a>(&'a self, sender: Sender, passing: &'a Passing) -> Piece<'a> {
        let kind = match sender {
            Sender::Client => PieceKind::Sent,
            Sender::Upstream => PieceKind::Received,
        };
        let mut piece = Piece::new(kind, passing.id.as_str());
        piece.after = Some(passing.after());
        (piece.omitted, piece.redactions) = (self.omitted, self.redactions);
        piece.with_bytes(&self.bytes)
    }
}

/// Passes bytes on in both directions until both sides have ended.
async fn pass_messages(socket: OpenSocket, client: OnUpgrade, server: OnUpgrade) {
    let socket = Mutex::new(socket);
    let (client, server) = match tokio::try_join!(client, server) {
        Ok((client, server)) => (TokioIo::new(client), TokioIo::new(server)),
        Err(error) => return lock(&socket).end(Some(&reason(&error))),
    };
    let (client_in, client_out) = tokio::io::split(client);
    let (server_in, server_out) = tokio::io::split(server);
    let up = pass_direction((client_in, server_out), Sender::Client, &socket);
    let down = pass_direction((server_in, client_out), Sender::Upstream, &socket);
    tokio::pin!(up, down);
    tokio::select! {
        (ended, mut upstream) = &mut up => {
            let _ = upstream.shutdown().await;
            // What upstream still says is recorded.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, &mut down).await;
            lock(&socket).close("the client closed the connection", ended);
        }
        (ended, mut client) = &mut down => {
            lock(&socket).close("upstream closed the connection", ended);
            let _ = client.shutdown().await;
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, &mut up).await;
        }
    }
}

/// Passes on what one side sends, until it ends; gives back the way to the other side.
async fn pass_direction<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    (mut from, mut to): (R, W),
    sender: Sender,
    socket: &Mutex<OpenSocket>,
) -> (std::io::Result<()>, W) {
    let mut buffer = vec![0; BUFFER_SIZE];
    loop {
        let passed = async {
            let count = from.read(&mut buffer).await?;
            lock(socket).observe(sender, &buffer[..count]);
            to.write_all(&buffer[..count]).await?;
            to.flush().await?;
            Ok(count)
        };
        match passed.await {
            Ok(0) => return (Ok(()), to),
            Ok(_) => {}
            Err(error) => return (Err(error), to),
        }
    }
}
