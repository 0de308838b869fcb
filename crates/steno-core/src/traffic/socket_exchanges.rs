//! Splits WebSocket connections into exchanges: each response becomes a request and an event stream, as over HTTP.
//!
//! Responses on one connection are sequential, so an event belongs to the oldest open exchange.

use std::collections::{HashMap, VecDeque};

use serde::Deserialize;

use super::dialect::Dialect;
use super::exchange::Exchange;
use super::piece::{Piece, PieceKind};
use super::realtime::RealtimeConversation;
use crate::json::{Object, Value};

/// Statuses of servers without WebSocket support. The client retries over HTTP.
const NO_WEBSOCKET: [u16; 4] = [404, 405, 426, 501];

/// The error of a response without an end.
const CLOSED: &str = "the connection closed before the response ended";

/// Converts WebSocket messages into pieces of exchanges. Passes other pieces through.
#[derive(Clone, Debug, Default)]
pub(crate) struct SocketExchanges {
    open: HashMap<String, Connection>,
}

#[derive(Clone, Debug)]
struct Connection {
    request: Piece<'static>,
    is_open: bool,
    /// Number of exchanges on this connection.
    count: u64,
    /// Ids and start times of the open exchanges.
    waiting: VecDeque<(String, u64)>,
    protocol: Protocol,
}

#[derive(Clone, Debug)]
enum Protocol {
    Responses,
    Realtime(Box<RealtimeConversation>),
    Unknown,
}

/// The effect of a message on the exchanges of its connection.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SocketStep {
    /// Begins an exchange with this request body.
    Ask(Object),
    /// An event of the oldest open exchange.
    Event(String),
    /// Ends the oldest open exchange.
    End,
    /// An error outside any response, as an exchange with this request body.
    Failure(Object, String),
}

impl SocketExchanges {
    /// Converts a piece into the pieces that replace it.
    pub(crate) fn take<'a>(&mut self, piece: Piece<'a>) -> Vec<Piece<'a>> {
        if piece.traffic == PieceKind::Request && asks_for_websocket(&piece) {
            let id = piece.exchange.clone().into_owned();
            self.open.insert(id, Connection::new(piece.into_owned()));
            return Vec::new();
        }
        let Some(connection) = self.open.get_mut(piece.exchange.as_ref()) else {
            return vec![piece];
        };
        match piece.traffic {
            PieceKind::Response if piece.status == Some(101) => {
                connection.is_open = true;
                Vec::new()
            }
            PieceKind::Sent | PieceKind::Received => connection.message(&piece),
            PieceKind::End if connection.is_open => {
                let ended = self.open.remove(piece.exchange.as_ref());
                ended.map(|connection| connection.end(&piece)).unwrap_or_default()
            }
            // The handshake failed, so this is a plain HTTP response.
            PieceKind::Response | PieceKind::End => {
                let request = self.open.remove(piece.exchange.as_ref()).map(|open| open.request);
                let has_none = piece.status.is_some_and(|status| NO_WEBSOCKET.contains(&status));
                // The request reached the API, though as GET.
                let posted = |request| Piece { method: Some("POST".into()), ..request };
                let request = request.filter(|_| !has_none).map(posted);
                request.into_iter().chain([piece]).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the remaining pieces of connections that never ended.
    pub(crate) fn finish(&mut self) -> Vec<Piece<'static>> {
        let mut open: Vec<_> = std::mem::take(&mut self.open).into_iter().collect();
        open.sort_by(|(first, _), (second, _)| first.cmp(second));
        open.into_iter().flat_map(|(_, connection)| connection.unfinished()).collect()
    }
}

impl Connection {
    fn new(request: Piece<'static>) -> Self {
        let path = request.path.as_deref().unwrap_or_default();
        let protocol = match Dialect::of(path) {
            Dialect::Responses => Protocol::Responses,
            Dialect::Realtime => Protocol::Realtime(Box::new(RealtimeConversation::new(path))),
            _ => Protocol::Unknown,
        };
        Self { request, is_open: false, count: 0, waiting: VecDeque::new(), protocol }
    }

    fn message(&mut self, piece: &Piece<'_>) -> Vec<Piece<'static>> {
        let text = piece.text.as_deref().unwrap_or_default();
        let is_sent = piece.traffic == PieceKind::Sent;
        let steps = match &mut self.protocol {
            Protocol::Responses if is_sent => asked_response(text),
            Protocol::Responses => answered_event(text),
            Protocol::Realtime(realtime) if is_sent => realtime.sent(text, piece.omitted),
            Protocol::Realtime(realtime) => realtime.received(text, piece.omitted),
            Protocol::Unknown => Vec::new(),
        };
        let after = piece.after.unwrap_or_default();
        steps.into_iter().flat_map(|step| self.pieces(step, after)).collect()
    }

    fn end(mut self, end: &Piece<'_>) -> Vec<Piece<'static>> {
        let after = end.after.unwrap_or_default();
        let mut pieces = self.last_pieces(after);
        let error = end.error.as_deref().unwrap_or(CLOSED);
        for (exchange, began) in std::mem::take(&mut self.waiting) {
            let mut end = Piece::new(PieceKind::End, exchange);
            (end.after, end.error) =
                (Some(after.saturating_sub(began)), Some(error.to_owned().into()));
            pieces.push(end);
        }
        pieces
    }

    fn unfinished(mut self) -> Vec<Piece<'static>> {
        if !self.is_open {
            return vec![self.request];
        }
        self.last_pieces(0)
    }

    fn last_pieces(&mut self, after: u64) -> Vec<Piece<'static>> {
        let Protocol::Realtime(realtime) = &mut self.protocol else { return Vec::new() };
        let steps = realtime.finish();
        steps.into_iter().flat_map(|step| self.pieces(step, after)).collect()
    }

    fn pieces(&mut self, step: SocketStep, after: u64) -> Vec<Piece<'static>> {
        match step {
            SocketStep::Ask(body) => self.begin(body, after),
            SocketStep::Event(event) => {
                let Some((exchange, began)) = self.waiting.front() else { return Vec::new() };
                let mut chunk = Piece::new(PieceKind::Chunk, exchange.clone());
                chunk.after = Some(after.saturating_sub(*began));
                chunk.text = Some(format!("data: {event}\n\n").into());
                vec![chunk]
            }
            SocketStep::Failure(body, event) => {
                let waiting = std::mem::take(&mut self.waiting);
                let steps = [SocketStep::Ask(body), SocketStep::Event(event), SocketStep::End];
                let pieces = steps.into_iter().flat_map(|step| self.pieces(step, after)).collect();
                self.waiting = waiting;
                pieces
            }
            SocketStep::End => {
                let Some((exchange, began)) = self.waiting.pop_front() else { return Vec::new() };
                let mut end = Piece::new(PieceKind::End, exchange);
                end.after = Some(after.saturating_sub(began));
                vec![end]
            }
        }
    }

    fn begin(&mut self, mut body: Object, after: u64) -> Vec<Piece<'static>> {
        let exchange = format!("{}.{}", self.request.exchange, self.count);
        self.count += 1;
        self.waiting.push_back((exchange.clone(), after));
        // Marks the response as a stream.
        body.insert("stream".to_owned(), Value::Bool(true));
        let opened = Exchange { at: self.request.at, ..Exchange::default() };
        let mut request = self.request.clone();
        request.exchange = exchange.clone().into();
        request.method = Some("POST".into());
        request.at = opened.moment(after).or(self.request.at);
        request.text = Some(Value::Object(body).to_string().into());
        let mut head = Piece::new(PieceKind::Response, exchange);
        (head.status, head.after) = (Some(200), Some(0));
        head.headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        vec![request, head]
    }
}

fn asks_for_websocket(request: &Piece<'_>) -> bool {
    request.headers.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case("upgrade") && value.eq_ignore_ascii_case("websocket")
    })
}

/// The `type` field of an event.
#[derive(Deserialize)]
pub(super) struct EventType<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) name: std::borrow::Cow<'a, str>,
}

impl EventType<'_> {
    /// Parses the type of an event; empty if there is none.
    pub(super) fn of(message: &str) -> String {
        let event = serde_json::from_str::<EventType<'_>>(message);
        event.map(|event| event.name.into_owned()).unwrap_or_default()
    }
}

/// Steps for a client message of the Responses API.
fn asked_response(message: &str) -> Vec<SocketStep> {
    if EventType::of(message) != "response.create" {
        return Vec::new();
    }
    let Ok(mut event) = serde_json::from_str::<Object>(message) else { return Vec::new() };
    event.shift_remove("type");
    let inner = match event.get_mut("response") {
        Some(Value::Object(inner)) => Some(std::mem::take(inner)),
        _ => None,
    };
    vec![SocketStep::Ask(inner.unwrap_or(event))]
}

/// Steps for a server message of the Responses API.
fn answered_event(message: &str) -> Vec<SocketStep> {
    let last =
        ["response.completed", "response.failed", "response.incomplete", "response.done", "error"];
    let event = SocketStep::Event(message.replace('\n', " "));
    match last.contains(&EventType::of(message).as_str()) {
        true => vec![event, SocketStep::End],
        false => vec![event],
    }
}
