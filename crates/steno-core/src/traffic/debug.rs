//! Encodes traffic as chibi's debug files: requests, and the usage of their responses.

use std::collections::HashMap;

use super::dialect::Dialect;
use super::exchange::Exchange;
use super::piece::{Piece, PieceKind};
use super::reply::Reply;
use super::socket_exchanges::SocketExchanges;
pub use crate::format::chibi::DebugFile;
use crate::json::{Object, Value};

/// Encodes pieces as debug lines.
#[derive(Debug, Default)]
pub struct DebugLines {
    open: HashMap<String, Exchange>,
    sockets: SocketExchanges,
}

impl DebugLines {
    /// Returns the debug lines that a piece completes, each with its file. Only model calls have lines.
    pub fn take(&mut self, piece: Piece<'_>) -> Vec<(DebugFile, String)> {
        let pieces = self.sockets.take(piece);
        pieces.into_iter().filter_map(|piece| self.take_exchange(piece)).collect()
    }

    fn take_exchange(&mut self, piece: Piece<'_>) -> Option<(DebugFile, String)> {
        match piece.traffic {
            PieceKind::Request => {
                let mut exchange = Exchange::begin(&piece);
                if exchange.dialect() == Dialect::Other {
                    return None;
                }
                let line = self.request(&exchange);
                (exchange.body, exchange.is_uploading) = (Vec::new(), false);
                self.open.insert(piece.exchange.into_owned(), exchange);
                line
            }
            PieceKind::End => {
                let mut exchange = self.open.remove(piece.exchange.as_ref())?;
                exchange.take(piece);
                Some(response(&exchange))
            }
            _ => {
                self.open.get_mut(piece.exchange.as_ref())?.take_some(piece, usize::MAX);
                None
            }
        }
    }

    fn request(&self, exchange: &Exchange) -> Option<(DebugFile, String)> {
        let request = Value::Object(exchange.asked()?);
        Some((DebugFile::Requests, DebugFile::Requests.line(&request, second(exchange, 0))))
    }
}

fn response(exchange: &Exchange) -> (DebugFile, String) {
    let reply = Reply::of(exchange);
    let fields = [
        ("id", reply.id.map(Value::from)),
        ("model", reply.model.map(Value::from)),
        ("usage", reply.stated_usage),
    ];
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let meta = Value::Object(fields.collect::<Object>());
    let after = exchange.end.as_ref().map_or(0, |end| end.after);
    (DebugFile::Responses, DebugFile::Responses.line(&meta, second(exchange, after)))
}

fn second(exchange: &Exchange, after: u64) -> i64 {
    exchange.moment(after).map_or(0, |moment| moment.unix_seconds())
}
