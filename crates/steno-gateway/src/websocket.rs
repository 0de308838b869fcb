//! Forwards WebSocket connections. Bytes are forwarded unchanged; each message is recorded before its last bytes are
//! forwarded.

use std::sync::Mutex;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use steno_agents::protocols::traffic::piece::TrafficPieceKind;
use steno_agents::protocols::traffic::socket_audio::strip_audio;
use steno_agents::protocols::traffic::{ApiDialect, TrafficPiece};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::body::{BoxedBody, empty_body, error_chain_text};
use crate::exchange::{
    ExchangeContext, RequestHead, RoutedRequest, record_response, response_head,
};
use crate::exchange_recorder::{ExchangeRecorder, RecordExtent};
use crate::http_headers::retarget_request;
use crate::locking::lock_unpoisoned;
use crate::refusal::unreachable_upstream;
use crate::request_body::{BodyKind, RequestBody};
use crate::websocket_frames::{MessageCompression, MessageReader, SocketMessage};

/// How many bytes are read at once.
const BUFFER_SIZE: usize = 16 << 10;

/// How long one side may take to close after the other has.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a request asks for an upgrade to WebSocket.
pub(crate) fn is_websocket_request(request: &Request<Incoming>) -> bool {
    let has = |name, token: &str| {
        let values = request.headers().get_all(name).iter().filter_map(|value| value.to_str().ok());
        values
            .flat_map(|value| value.split(','))
            .any(|value| value.trim().eq_ignore_ascii_case(token))
    };
    request.version() == Version::HTTP_11
        && request.method() == Method::GET
        && has(UPGRADE, "websocket")
        && has(CONNECTION, "upgrade")
}

/// Opens a WebSocket to an upstream, and forwards its messages.
pub(crate) async fn forward_websocket(
    context: &ExchangeContext,
    routed: RoutedRequest<'_>,
) -> Response<BoxedBody> {
    let RoutedRequest { upstream, uri, mut request } = routed;
    let client = hyper::upgrade::on(&mut request);
    let (mut parts, _) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let is_realtime = ApiDialect::from_path(uri.path()) == ApiDialect::Realtime;
    let (kind, body) = (BodyKind::from_headers(&parts.headers), RequestBody::empty());
    let head = RequestHead { upstream, uri: &uri, parts: &parts };
    let pending = context.begin_exchange(&head, &kind, &body);
    retarget_request(&mut parts, uri);
    parts.headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    parts.headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    let request = Request::from_parts(parts, empty_body());
    let response = context.clients.upgradable.request(request).await;
    let mut recorder = pending.into_recorder();
    match response {
        Ok(mut response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
            let server = hyper::upgrade::on(&mut response);
            let head = response_head(&response, &recorder);
            recorder.extent = recorder.append_pieces(&[head]);
            let socket = SocketRecorder::new(recorder, response.headers(), is_realtime);
            tokio::spawn(forward_messages(socket, client, server));
            response.map(|_| empty_body())
        }
        Ok(response) => record_response(response, recorder),
        Err(error) => {
            let reason = error_chain_text(&error);
            recorder.record_end(Some(&reason));
            unreachable_upstream(&path, &upstream.origin, &reason)
        }
    }
}

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocketSide {
    Client,
    Upstream,
}

/// Records the messages of one connection.
struct SocketRecorder {
    exchange: ExchangeRecorder,
    from_client: MessageReader,
    from_upstream: MessageReader,
    is_realtime: bool,
    /// Whether one side has sent a close frame.
    is_closing: bool,
    is_ended: bool,
}

impl SocketRecorder {
    fn new(exchange: ExchangeRecorder, headers: &HeaderMap, is_realtime: bool) -> Self {
        let extensions = headers.get("sec-websocket-extensions");
        let extensions = extensions.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let reader = |parameter: &str| {
            let mut words = extensions.split(';').map(str::trim);
            let is_deflate = words.next() == Some("permessage-deflate");
            let is_reset = words.any(|word| word.eq_ignore_ascii_case(parameter));
            MessageReader::new(is_deflate.then_some(MessageCompression { is_reset }))
        };
        let from_client = reader("client_no_context_takeover");
        let from_upstream = reader("server_no_context_takeover");
        let (is_closing, is_ended) = (false, false);
        Self { exchange, from_client, from_upstream, is_realtime, is_closing, is_ended }
    }

    /// Records the messages that these bytes complete.
    fn record_bytes(&mut self, side: SocketSide, bytes: &[u8]) {
        if self.exchange.extent != RecordExtent::Complete || self.is_ended {
            return;
        }
        let reader = match side {
            SocketSide::Client => &mut self.from_client,
            SocketSide::Upstream => &mut self.from_upstream,
        };
        let mut messages = Vec::new();
        let read = reader.push(bytes, &mut messages);
        let redacted: Vec<_> =
            messages.into_iter().filter_map(|message| self.redact_message(message)).collect();
        let pieces: Vec<_> =
            redacted.iter().map(|message| message.to_piece(side, &self.exchange)).collect();
        if !pieces.is_empty() {
            self.exchange.extent = self.exchange.append_pieces(&pieces);
        }
        if let Err(error) = read {
            self.record_end(Some(&format!("{error}; the rest was not recorded")));
        }
    }

    /// The message as recorded; `None` for a close frame.
    fn redact_message(&mut self, message: SocketMessage) -> Option<RedactedMessage> {
        let bytes = match message {
            SocketMessage::Close => {
                self.is_closing = true;
                return None;
            }
            SocketMessage::TooLarge(omitted) => {
                return Some(RedactedMessage { omitted, ..RedactedMessage::default() });
            }
            SocketMessage::Text(bytes) | SocketMessage::Binary(bytes) => bytes,
        };
        let shortened = self.is_realtime.then(|| strip_audio(&bytes)).flatten();
        let (bytes, omitted) = match shortened {
            Some(shortened) => (shortened.text.into_bytes(), shortened.omitted),
            None => (bytes, 0),
        };
        let mut filter = self.exchange.secrets.body_filter();
        let mut clean = filter.push(&bytes);
        clean.extend(filter.finish());
        let redactions = filter.redactions();
        self.exchange.secrets = filter.into_secrets();
        Some(RedactedMessage { bytes: clean, omitted, redactions })
    }

    /// Records that one side closed the connection, which is an error without a close frame.
    fn record_close(&mut self, what: &str, ended: std::io::Result<()>) {
        let error = match ended {
            _ if self.is_closing => None,
            Ok(()) => Some(what.to_owned()),
            Err(error) => Some(format!("{what}: {error}")),
        };
        self.record_end(error.as_deref());
    }

    fn record_end(&mut self, error: Option<&str>) {
        if !self.is_ended {
            self.is_ended = true;
            self.exchange.record_end(error);
        }
    }
}

impl Drop for SocketRecorder {
    fn drop(&mut self) {
        self.record_end(Some("the gateway stopped"));
    }
}

/// A message as recorded.
#[derive(Default)]
struct RedactedMessage {
    bytes: Vec<u8>,
    omitted: u64,
    redactions: u64,
}

impl RedactedMessage {
    fn to_piece<'a>(
        &'a self,
        side: SocketSide,
        exchange: &'a ExchangeRecorder,
    ) -> TrafficPiece<'a> {
        let kind = match side {
            SocketSide::Client => TrafficPieceKind::Sent,
            SocketSide::Upstream => TrafficPieceKind::Received,
        };
        let mut piece = TrafficPiece::new(kind, exchange.id.as_str());
        piece.after = Some(exchange.elapsed_micros());
        (piece.omitted, piece.redactions) = (self.omitted, self.redactions);
        piece.with_bytes(&self.bytes)
    }
}

/// Forwards bytes in both directions until both sides have ended.
async fn forward_messages(socket: SocketRecorder, client: OnUpgrade, server: OnUpgrade) {
    let socket = Mutex::new(socket);
    let (client, server) = match tokio::try_join!(client, server) {
        Ok((client, server)) => (TokioIo::new(client), TokioIo::new(server)),
        Err(error) => {
            return lock_unpoisoned(&socket).record_end(Some(&error_chain_text(&error)));
        }
    };
    let (client_in, client_out) = tokio::io::split(client);
    let (server_in, server_out) = tokio::io::split(server);
    let up = forward_direction(client_in, server_out, SocketSide::Client, &socket);
    let down = forward_direction(server_in, client_out, SocketSide::Upstream, &socket);
    tokio::pin!(up, down);
    tokio::select! {
        (ended, mut upstream) = &mut up => {
            let _ = upstream.shutdown().await;
            // The upstream's remaining messages are recorded.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, &mut down).await;
            lock_unpoisoned(&socket).record_close("the client closed the connection", ended);
        }
        (ended, mut client) = &mut down => {
            lock_unpoisoned(&socket).record_close("upstream closed the connection", ended);
            let _ = client.shutdown().await;
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, &mut up).await;
        }
    }
}

/// Forwards bytes from one side until it ends. Returns the result, and the stream to the other side.
async fn forward_direction<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    mut from: R,
    mut to: W,
    side: SocketSide,
    socket: &Mutex<SocketRecorder>,
) -> (std::io::Result<()>, W) {
    let mut buffer = vec![0; BUFFER_SIZE];
    loop {
        let copied = async {
            let count = from.read(&mut buffer).await?;
            lock_unpoisoned(socket).record_bytes(side, &buffer[..count]);
            to.write_all(&buffer[..count]).await?;
            to.flush().await?;
            Ok(count)
        };
        match copied.await {
            Ok(0) => return (Ok(()), to),
            Ok(_) => {}
            Err(error) => return (Err(error), to),
        }
    }
}
