//! Attributes recorded exchanges to sessions where no header names one: an agent that wrote the same answers to its own
//! session file at the same time made the requests.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp as Instant};

use super::decoded_response::DecodedResponse;
use super::dialect::ApiDialect;
use super::exchange::ApiExchange;
use super::piece::{TrafficPiece, TrafficPieceKind};
use crate::join::EntryKey;
use steno_model::entry::{Entry, Role};

/// How long before its request an agent may date an answer. Agents round their clocks.
const MAX_SKEW_BEFORE: SignedDuration = SignedDuration::from_secs(1);

/// How long after the end of a response an agent may date the answer.
const MAX_SKEW_AFTER: SignedDuration = SignedDuration::from_secs(30);

/// Limit for the compared bytes of a response.
const MAX_COMPARED_BYTES: usize = 4 << 20;

/// From the arrival of a request to the end of its response, or to that of a later one.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeSpan {
    /// The arrival of the request.
    pub from: Instant,
    /// The end of the response.
    pub to: Instant,
}

/// An ended exchange and the keys of its answer.
#[derive(Debug)]
pub struct EndedExchange {
    /// Its id.
    pub id: String,
    /// `None` if the recording has no times.
    span: Option<ExchangeSpan>,
    keys: Vec<EntryKey>,
}

/// Collects the ended exchanges of a recording.
#[derive(Debug, Default)]
pub struct EndedExchangeCollector {
    open_exchanges: HashMap<String, ApiExchange>,
    /// The ended exchanges, in the order of their ends.
    pub ended: Vec<EndedExchange>,
}

impl EndedExchangeCollector {
    /// Adds the next piece of the recording.
    pub fn push_piece(&mut self, piece: TrafficPiece<'_>) {
        match piece.traffic {
            TrafficPieceKind::Request => {
                let mut exchange = ApiExchange::from_request(&piece);
                (exchange.request_bytes, exchange.is_uploading) = (Vec::new(), false);
                self.open_exchanges.insert(piece.exchange.into_owned(), exchange);
            }
            TrafficPieceKind::Response | TrafficPieceKind::Chunk => {
                if let Some(exchange) = self.open_exchanges.get_mut(piece.exchange.as_ref()) {
                    let held = exchange.chunks.first().map_or(0, |(_, bytes)| bytes.len());
                    exchange.push_piece_limited(piece, MAX_COMPARED_BYTES.saturating_sub(held));
                }
            }
            TrafficPieceKind::End => {
                let id = piece.exchange.clone().into_owned();
                if let Some(mut exchange) = self.open_exchanges.remove(&id) {
                    exchange.push_piece(piece);
                    self.ended.push(EndedExchange::new(id, &exchange));
                }
            }
            // Agents that use WebSockets name their session.
            TrafficPieceKind::Settings
            | TrafficPieceKind::Upload
            | TrafficPieceKind::UploadEnd
            | TrafficPieceKind::Informational
            | TrafficPieceKind::Moved
            | TrafficPieceKind::Sent
            | TrafficPieceKind::Received => {}
        }
    }

    /// All exchanges, including those without a recorded end.
    pub fn into_all(self) -> Vec<EndedExchange> {
        let open =
            self.open_exchanges.into_iter().map(|(id, exchange)| EndedExchange::new(id, &exchange));
        self.ended.into_iter().chain(open).collect()
    }
}

impl EndedExchange {
    fn new(id: String, exchange: &ApiExchange) -> Self {
        let after =
            exchange.end.as_ref().map_or(exchange.last_chunk_micros, |end| end.after_micros);
        let ended = exchange.timestamp_after(after);
        let span = exchange
            .started_at
            .zip(ended)
            .map(|(at, ended)| ExchangeSpan { from: at.instant(), to: ended.instant() });
        let is_read = exchange.dialect() != ApiDialect::Other;
        let entries =
            if is_read { DecodedResponse::from_exchange(exchange).entries } else { Vec::new() };
        Self { id, span, keys: entries.iter().flat_map(EntryKey::entry_keys).collect() }
    }

    /// When the request arrived and when the response ended.
    pub fn span(&self) -> Option<ExchangeSpan> {
        self.span
    }
}

/// Answers in an agent's own session file, with their times.
#[derive(Debug, Default)]
pub struct AgentAnswers {
    by_key: HashMap<EntryKey, Vec<Option<Instant>>>,
}

impl AgentAnswers {
    /// Adds an entry of the agent's session file if it may be an answer from this time span.
    pub fn add_entry(&mut self, entry: &Entry, span: ExchangeSpan) {
        let at = entry.created_at.map(|at| at.instant());
        let is_near = at.is_none_or(|at| {
            at.saturating_add(MAX_SKEW_BEFORE).is_ok_and(|at| at >= span.from)
                && at.saturating_sub(MAX_SKEW_AFTER).is_ok_and(|at| at <= span.to)
        });
        if entry.role == Role::Assistant && is_near {
            for key in EntryKey::entry_keys(entry) {
                self.by_key.entry(key).or_default().push(at);
            }
        }
    }

    /// Whether the agent wrote down the answer of this exchange. Each of its answers matches once.
    pub fn take_answer(&mut self, exchange: &EndedExchange) -> bool {
        let mut is_found = false;
        for key in &exchange.keys {
            let Some(times) = self.by_key.get_mut(key) else { continue };
            let fits = |at: &Option<Instant>| match (at, exchange.span) {
                (Some(at), Some(ExchangeSpan { from, to })) => {
                    at.duration_since(from) >= -MAX_SKEW_BEFORE
                        && at.duration_since(to) <= MAX_SKEW_AFTER
                }
                _ => true,
            };
            if let Some(position) = times.iter().position(fits) {
                times.remove(position);
                is_found = true;
            }
        }
        is_found
    }
}
