//! Attributes recorded exchanges to sessions where no header names one: an agent that wrote the same answers to its own
//! session file at the same time made the requests.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp as Instant};

use super::dialect::Dialect;
use super::exchange::Exchange;
use super::piece::{Piece, PieceKind};
use super::reply::Reply;
use crate::entry::{Entry, Role};
use crate::join::EntryKey;

/// How long before its request an agent may date an answer. Agents round their clocks.
const DATED_BEFORE: SignedDuration = SignedDuration::from_secs(1);

/// How long after the end of a response an agent may date the answer.
const DATED_AFTER: SignedDuration = SignedDuration::from_secs(30);

/// Limit for the compared bytes of a response.
const COMPARED: usize = 4 << 20;

/// An ended exchange and the keys of its answer.
#[derive(Debug)]
pub(crate) struct EndedExchange {
    pub(crate) id: String,
    /// When the request arrived and when the response ended.
    span: Option<(Instant, Instant)>,
    keys: Vec<EntryKey>,
}

/// Collects the ended exchanges of a recording.
#[derive(Debug, Default)]
pub(crate) struct EndedExchanges {
    open: HashMap<String, Exchange>,
    pub(crate) all: Vec<EndedExchange>,
}

impl EndedExchanges {
    pub(crate) fn take(&mut self, piece: Piece<'_>) {
        match piece.traffic {
            PieceKind::Request => {
                let mut exchange = Exchange::begin(&piece);
                (exchange.body, exchange.is_uploading) = (Vec::new(), false);
                self.open.insert(piece.exchange.into_owned(), exchange);
            }
            PieceKind::Response | PieceKind::Chunk => {
                if let Some(exchange) = self.open.get_mut(piece.exchange.as_ref()) {
                    let held = exchange.chunks.first().map_or(0, |(_, bytes)| bytes.len());
                    exchange.take_some(piece, COMPARED.saturating_sub(held));
                }
            }
            PieceKind::End => {
                let id = piece.exchange.clone().into_owned();
                if let Some(mut exchange) = self.open.remove(&id) {
                    exchange.take(piece);
                    self.all.push(EndedExchange::new(id, &exchange));
                }
            }
            // Agents that use WebSockets name their session.
            PieceKind::Settings
            | PieceKind::Upload
            | PieceKind::UploadEnd
            | PieceKind::Informational
            | PieceKind::Moved
            | PieceKind::Sent
            | PieceKind::Received => {}
        }
    }

    /// All exchanges, including those without a recorded end.
    pub(crate) fn with_open(self) -> Vec<EndedExchange> {
        let open = self.open.into_iter().map(|(id, exchange)| EndedExchange::new(id, &exchange));
        self.all.into_iter().chain(open).collect()
    }
}

impl EndedExchange {
    fn new(id: String, exchange: &Exchange) -> Self {
        let after = exchange.end.as_ref().map_or(exchange.last_after, |end| end.after);
        let ended = exchange.moment(after);
        let span = exchange.at.zip(ended).map(|(at, ended)| (at.instant(), ended.instant()));
        let is_read = exchange.dialect() != Dialect::Other;
        let entries = if is_read { Reply::of(exchange).entries } else { Vec::new() };
        Self { id, span, keys: entries.iter().flat_map(EntryKey::of_entry).collect() }
    }

    /// When the request arrived and when the response ended.
    pub(crate) fn span(&self) -> Option<(Instant, Instant)> {
        self.span
    }
}

/// Answers in an agent's own session file, with their times.
#[derive(Debug, Default)]
pub(crate) struct OwnAnswers {
    by_key: HashMap<EntryKey, Vec<Option<Instant>>>,
}

impl OwnAnswers {
    /// Adds an entry of the agent's session file if it may be an answer from this time span.
    pub(crate) fn add(&mut self, entry: &Entry, (from, to): (Instant, Instant)) {
        let at = entry.created_at.map(|at| at.instant());
        let is_near = at.is_none_or(|at| {
            at.saturating_add(DATED_BEFORE).is_ok_and(|at| at >= from)
                && at.saturating_sub(DATED_AFTER).is_ok_and(|at| at <= to)
        });
        if entry.role == Role::Assistant && is_near {
            for key in EntryKey::of_entry(entry) {
                self.by_key.entry(key).or_default().push(at);
            }
        }
    }

    /// Whether the agent wrote down the answer of this exchange. Each of its answers matches once.
    pub(crate) fn take_answer(&mut self, exchange: &EndedExchange) -> bool {
        let mut is_found = false;
        for key in &exchange.keys {
            let Some(times) = self.by_key.get_mut(key) else { continue };
            let fits = |at: &Option<Instant>| match (at, exchange.span) {
                (Some(at), Some((from, to))) => {
                    at.duration_since(from) >= -DATED_BEFORE && at.duration_since(to) <= DATED_AFTER
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
