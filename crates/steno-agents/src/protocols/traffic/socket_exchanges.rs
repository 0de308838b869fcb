//! Splits WebSocket connections into exchanges: each response becomes a request and an event stream, as over HTTP.
//!
//! Responses on one connection are sequential, so an event belongs to the oldest open exchange.

use std::collections::{HashMap, VecDeque};

use serde::Deserialize;

use super::dialect::ApiDialect;
use super::exchange::ApiExchange;
use super::piece::{TrafficPiece, TrafficPieceKind};
use super::realtime::RealtimeConversation;
use steno_model::json::{Object, Value};

/// Statuses of servers without WebSocket support. The client retries over HTTP.
const NO_WEBSOCKET_STATUSES: [u16; 4] = [404, 405, 426, 501];

/// The error of a response without an end.
const CLOSED_EARLY_ERROR: &str = "the connection closed before the response ended";

/// Converts WebSocket messages into pieces of exchanges. Passes other pieces through.
#[derive(Clone, Debug, Default)]
pub struct SocketExchanges {
    connections: HashMap<String, SocketConnection>,
}

#[derive(Clone, Debug)]
struct SocketConnection {
    request: TrafficPiece<'static>,
    is_open: bool,
    /// Number of exchanges on this connection.
    exchange_count: u64,
    /// Ids and start times of the open exchanges.
    open_exchanges: VecDeque<(String, u64)>,
    protocol: SocketProtocol,
}

#[derive(Clone, Debug)]
enum SocketProtocol {
    Responses,
    Realtime(Box<RealtimeConversation>),
    Unknown,
}

/// The effect of a message on the exchanges of its connection.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SocketStep {
    /// Begins an exchange with this request body.
    Request(Object),
    /// An event of the oldest open exchange.
    Event(String),
    /// Ends the oldest open exchange.
    End,
    /// An error outside any response, as an exchange with this request body.
    Failure(Object, String),
}

impl SocketExchanges {
    /// Converts a piece into the pieces that replace it.
    pub fn push_piece<'a>(&mut self, piece: TrafficPiece<'a>) -> Vec<TrafficPiece<'a>> {
        if piece.traffic == TrafficPieceKind::Request && is_websocket_request(&piece) {
            let id = piece.exchange.clone().into_owned();
            self.connections.insert(id, SocketConnection::new(piece.into_owned()));
            return Vec::new();
        }
        let Some(connection) = self.connections.get_mut(piece.exchange.as_ref()) else {
            return vec![piece];
        };
        match piece.traffic {
            TrafficPieceKind::Response if piece.status == Some(101) => {
                connection.is_open = true;
                Vec::new()
            }
            TrafficPieceKind::Sent | TrafficPieceKind::Received => {
                connection.handle_message(&piece)
            }
            TrafficPieceKind::End if connection.is_open => {
                let ended = self.connections.remove(piece.exchange.as_ref());
                ended.map(|connection| connection.close(&piece)).unwrap_or_default()
            }
            // The handshake failed, so this is a plain HTTP response.
            TrafficPieceKind::Response | TrafficPieceKind::End => {
                let request =
                    self.connections.remove(piece.exchange.as_ref()).map(|open| open.request);
                let has_none =
                    piece.status.is_some_and(|status| NO_WEBSOCKET_STATUSES.contains(&status));
                // The request reached the API, though as GET.
                let posted = |request| TrafficPiece { method: Some("POST".into()), ..request };
                let request = request.filter(|_| !has_none).map(posted);
                request.into_iter().chain([piece]).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the remaining pieces of connections that never ended.
    pub(crate) fn finish(&mut self) -> Vec<TrafficPiece<'static>> {
        let mut open: Vec<_> = std::mem::take(&mut self.connections).into_iter().collect();
        open.sort_by(|(first, _), (second, _)| first.cmp(second));
        open.into_iter().flat_map(|(_, connection)| connection.finish_unclosed()).collect()
    }
}

impl SocketConnection {
    fn new(request: TrafficPiece<'static>) -> Self {
        let path = request.path.as_deref().unwrap_or_default();
        let protocol = match ApiDialect::from_path(path) {
            ApiDialect::Responses => SocketProtocol::Responses,
            ApiDialect::Realtime => {
                SocketProtocol::Realtime(Box::new(RealtimeConversation::new(path)))
            }
            _ => SocketProtocol::Unknown,
        };
        Self {
            request,
            is_open: false,
            exchange_count: 0,
            open_exchanges: VecDeque::new(),
            protocol,
        }
    }

    fn handle_message(&mut self, piece: &TrafficPiece<'_>) -> Vec<TrafficPiece<'static>> {
        let text = piece.text.as_deref().unwrap_or_default();
        let is_sent = piece.traffic == TrafficPieceKind::Sent;
        let steps = match &mut self.protocol {
            SocketProtocol::Responses if is_sent => client_message_steps(text),
            SocketProtocol::Responses => server_message_steps(text),
            SocketProtocol::Realtime(realtime) if is_sent => {
                realtime.handle_client_message(text, piece.omitted)
            }
            SocketProtocol::Realtime(realtime) => {
                realtime.handle_server_message(text, piece.omitted)
            }
            SocketProtocol::Unknown => Vec::new(),
        };
        let after = piece.after.unwrap_or_default();
        steps.into_iter().flat_map(|step| self.pieces_for_step(step, after)).collect()
    }

    fn close(mut self, end: &TrafficPiece<'_>) -> Vec<TrafficPiece<'static>> {
        let after = end.after.unwrap_or_default();
        let mut pieces = self.flush_pieces(after);
        let error = end.error.as_deref().unwrap_or(CLOSED_EARLY_ERROR);
        for (exchange, began) in std::mem::take(&mut self.open_exchanges) {
            let mut end = TrafficPiece::new(TrafficPieceKind::End, exchange);
            (end.after, end.error) =
                (Some(after.saturating_sub(began)), Some(error.to_owned().into()));
            pieces.push(end);
        }
        pieces
    }

    fn finish_unclosed(mut self) -> Vec<TrafficPiece<'static>> {
        if !self.is_open {
            return vec![self.request];
        }
        self.flush_pieces(0)
    }

    fn flush_pieces(&mut self, after: u64) -> Vec<TrafficPiece<'static>> {
        let SocketProtocol::Realtime(realtime) = &mut self.protocol else { return Vec::new() };
        let steps = realtime.finish();
        steps.into_iter().flat_map(|step| self.pieces_for_step(step, after)).collect()
    }

    fn pieces_for_step(&mut self, step: SocketStep, after: u64) -> Vec<TrafficPiece<'static>> {
        match step {
            SocketStep::Request(body) => self.begin_exchange(body, after),
            SocketStep::Event(event) => {
                let Some((exchange, began)) = self.open_exchanges.front() else {
                    return Vec::new();
                };
                let mut chunk = TrafficPiece::new(TrafficPieceKind::Chunk, exchange.clone());
                chunk.after = Some(after.saturating_sub(*began));
                chunk.text = Some(format!("data: {event}\n\n").into());
                vec![chunk]
            }
            SocketStep::Failure(body, event) => {
                let waiting = std::mem::take(&mut self.open_exchanges);
                let steps = [SocketStep::Request(body), SocketStep::Event(event), SocketStep::End];
                let pieces =
                    steps.into_iter().flat_map(|step| self.pieces_for_step(step, after)).collect();
                self.open_exchanges = waiting;
                pieces
            }
            SocketStep::End => {
                let Some((exchange, began)) = self.open_exchanges.pop_front() else {
                    return Vec::new();
                };
                let mut end = TrafficPiece::new(TrafficPieceKind::End, exchange);
                end.after = Some(after.saturating_sub(began));
                vec![end]
            }
        }
    }

    fn begin_exchange(&mut self, mut body: Object, after: u64) -> Vec<TrafficPiece<'static>> {
        let exchange = format!("{}.{}", self.request.exchange, self.exchange_count);
        self.exchange_count += 1;
        self.open_exchanges.push_back((exchange.clone(), after));
        // Marks the response as a stream.
        body.insert("stream".to_owned(), Value::Bool(true));
        let opened = ApiExchange { started_at: self.request.at, ..ApiExchange::default() };
        let mut request = self.request.clone();
        request.exchange = exchange.clone().into();
        request.method = Some("POST".into());
        request.at = opened.timestamp_after(after).or(self.request.at);
        request.text = Some(Value::Object(body).to_string().into());
        let mut head = TrafficPiece::new(TrafficPieceKind::Response, exchange);
        (head.status, head.after) = (Some(200), Some(0));
        head.headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        vec![request, head]
    }
}

fn is_websocket_request(request: &TrafficPiece<'_>) -> bool {
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
    pub(super) fn parse_name(message: &str) -> String {
        let event = serde_json::from_str::<EventType<'_>>(message);
        event.map(|event| event.name.into_owned()).unwrap_or_default()
    }
}

/// Steps for a client message of the Responses API.
fn client_message_steps(message: &str) -> Vec<SocketStep> {
    if EventType::parse_name(message) != "response.create" {
        return Vec::new();
    }
    let Ok(mut event) = serde_json::from_str::<Object>(message) else { return Vec::new() };
    event.shift_remove("type");
    let inner = match event.get_mut("response") {
        Some(Value::Object(inner)) => Some(std::mem::take(inner)),
        _ => None,
    };
    vec![SocketStep::Request(inner.unwrap_or(event))]
}

/// Steps for a server message of the Responses API.
fn server_message_steps(message: &str) -> Vec<SocketStep> {
    let last =
        ["response.completed", "response.failed", "response.incomplete", "response.done", "error"];
    let event = SocketStep::Event(message.replace('\n', " "));
    match last.contains(&EventType::parse_name(message).as_str()) {
        true => vec![event, SocketStep::End],
        false => vec![event],
    }
}
