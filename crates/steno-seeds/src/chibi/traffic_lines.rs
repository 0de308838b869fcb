//! Encodes traffic as chibi's debug files: requests, and the usage of their responses.

use std::collections::HashMap;

use super::debug_file::ChibiDebugFile;
use steno_agents::protocols::traffic::piece::{TrafficPiece, TrafficPieceKind};
use steno_agents::protocols::traffic::{ApiDialect, ApiExchange, ResponseSummary, SocketExchanges};
use steno_model::json::{Object, Value};

/// Encodes pieces as debug lines.
#[derive(Debug, Default)]
pub struct DebugLineEncoder {
    open_exchanges: HashMap<String, ApiExchange>,
    sockets: SocketExchanges,
}

impl DebugLineEncoder {
    /// Returns the debug lines that a piece completes, each with its file. Only model calls have lines.
    pub fn push_piece(&mut self, piece: TrafficPiece<'_>) -> Vec<(ChibiDebugFile, String)> {
        let pieces = self.sockets.push_piece(piece);
        pieces.into_iter().filter_map(|piece| self.push_exchange_piece(piece)).collect()
    }

    fn push_exchange_piece(&mut self, piece: TrafficPiece<'_>) -> Option<(ChibiDebugFile, String)> {
        match piece.traffic {
            TrafficPieceKind::Request => {
                let mut exchange = ApiExchange::from_request(&piece);
                if exchange.dialect() == ApiDialect::Other {
                    return None;
                }
                let line = self.request_line(&exchange);
                (exchange.request_bytes, exchange.is_uploading) = (Vec::new(), false);
                self.open_exchanges.insert(piece.exchange.into_owned(), exchange);
                line
            }
            TrafficPieceKind::End => {
                let mut exchange = self.open_exchanges.remove(piece.exchange.as_ref())?;
                exchange.push_piece(piece);
                Some(response_line(&exchange))
            }
            _ => {
                self.open_exchanges
                    .get_mut(piece.exchange.as_ref())?
                    .push_piece_limited(piece, usize::MAX);
                None
            }
        }
    }

    fn request_line(&self, exchange: &ApiExchange) -> Option<(ChibiDebugFile, String)> {
        let request = Value::Object(exchange.parse_request()?);
        Some((
            ChibiDebugFile::Requests,
            ChibiDebugFile::Requests.render_line(&request, unix_second(exchange, 0)),
        ))
    }
}

fn response_line(exchange: &ApiExchange) -> (ChibiDebugFile, String) {
    let reply = ResponseSummary::from_exchange(exchange);
    let fields = [
        ("id", reply.id.map(Value::from)),
        ("model", reply.model.map(Value::from)),
        ("usage", reply.provider_usage),
    ];
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let meta = Value::Object(fields.collect::<Object>());
    let after = exchange.end.as_ref().map_or(0, |end| end.after_micros);
    (
        ChibiDebugFile::Responses,
        ChibiDebugFile::Responses.render_line(&meta, unix_second(exchange, after)),
    )
}

fn unix_second(exchange: &ApiExchange, after: u64) -> i64 {
    exchange.timestamp_after(after).map_or(0, |moment| moment.unix_seconds())
}
