//! Conversations as real clients send them, in each dialect, plain and streamed.

use serde_json::json;

use super::*;
use crate::protocols::traffic::piece::TrafficPieceKind;
use steno_model::entry::{Entry, EntryKind, Usage};
use steno_model::json::Value;

mod dialects;
mod large;
mod matching;
mod providers;
mod streams;

/// Builds a recording.
#[derive(Default)]
struct Tape {
    decoder: TrafficDecoder,
    entries: Vec<Entry>,
    exchanges: u64,
}

impl Tape {
    /// Sends a request, and leaves the response open.
    fn ask(&mut self, path: &str, body: &Value) -> String {
        self.exchanges += 1;
        let exchange = format!("x{}", self.exchanges);
        let bytes = body.to_string().into_bytes();
        let mut piece = TrafficPiece::new(TrafficPieceKind::Request, exchange.as_str());
        piece.at = Some(format!("2026-01-05T09:15:{:02}.000000Z", self.exchanges).parse().unwrap());
        (piece.method, piece.path) = (Some("POST".into()), Some(path.into()));
        self.take(&piece.with_bytes(&bytes));
        exchange
    }

    /// Sends a response in chunks, and leaves the end open.
    fn say(&mut self, exchange: &str, status: u16, chunks: &[&str]) {
        let mut head = TrafficPiece::new(TrafficPieceKind::Response, exchange);
        (head.status, head.after) = (Some(status), Some(200_000));
        self.take(&head);
        for (at, chunk) in chunks.iter().enumerate() {
            self.take(&TrafficPiece::new_chunk(
                exchange,
                250_000 + at as u64 * 1000,
                chunk.as_bytes(),
            ));
        }
    }

    fn end(&mut self, exchange: &str, error: Option<&str>) {
        self.take(&TrafficPiece::new_end(exchange, 500_000, error));
    }

    /// A whole exchange with a plain response.
    fn exchange(&mut self, path: &str, request: &Value, answer: &Value) {
        let exchange = self.ask(path, request);
        self.say(&exchange, 200, &[&answer.to_string()]);
        self.end(&exchange, None);
    }

    /// A whole exchange with an event stream.
    fn stream(&mut self, path: &str, request: &Value, events: &[Value]) {
        let exchange = self.ask(path, request);
        self.say(&exchange, 200, &[&sse(events)]);
        self.end(&exchange, None);
    }

    /// Encodes and parses each piece, as the vault does.
    fn take(&mut self, piece: &TrafficPiece<'_>) {
        let piece = TrafficPiece::parse(&piece.to_line()).unwrap();
        let entries = self.decoder.decode_piece(piece);
        self.entries.extend(entries);
    }

    /// The decoded entries: source, role, kind and the first words.
    fn lines_with_source(&self) -> Vec<String> {
        self.entries.iter().map(line).collect()
    }

    /// The decoded entries, without their sources.
    fn lines(&self) -> Vec<String> {
        let lines = self.lines_with_source();
        lines.iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
    }

    fn usage(&self) -> Usage {
        let mut total = Usage::default();
        self.entries.iter().filter_map(|entry| entry.usage).for_each(|usage| total.add(&usage));
        total
    }
}

fn line(entry: &Entry) -> String {
    let words = match entry.kind {
        EntryKind::ToolCall => format!(
            "{}({})",
            entry.tool_name.as_deref().unwrap_or("?"),
            entry.tool_input.as_ref().map(Value::to_string).unwrap_or_default()
        ),
        EntryKind::ToolResult => {
            format!("{}: {}", entry.tool_name.as_deref().unwrap_or("?"), entry.content)
        }
        _ => entry.content.clone(),
    };
    format!("{} {} {}: {words}", entry.source, entry.role, entry.kind)
}

fn sse(events: &[Value]) -> String {
    let event = |event: &Value| match event["type"].as_str() {
        Some(kind) => format!("event: {kind}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    events.iter().map(event).collect()
}

/// One field of an entry's metadata.
fn about(entry: &Entry, field: &str) -> Value {
    entry.metadata.as_ref().and_then(|metadata| metadata.get(field)).cloned().unwrap_or(json!(null))
}
