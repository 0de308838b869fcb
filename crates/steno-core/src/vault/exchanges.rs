//! Assembles recorded API traffic into exchanges.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::SessionDir;
use super::record;
use super::sealed::Problems;
use crate::durable::FileError;
use crate::traffic::piece::PieceKind;
use crate::traffic::{Exchange, Piece, SocketExchanges};

impl SessionDir {
    /// The exchanges that a gateway recorded, in the order of their requests.
    pub fn exchanges(&self) -> Result<Vec<Exchange>, FileError> {
        let mut exchanges: Vec<Exchange> = Vec::new();
        let mut indexes: HashMap<String, usize> = HashMap::new();
        let mut sockets = SocketExchanges::default();
        self.each_recorded_line(&Problems::default(), &mut |_, line| {
            let Some(piece) = record::raw_of(line).and_then(Piece::of) else { return };
            for piece in sockets.take(piece) {
                if piece.traffic == PieceKind::Request {
                    indexes.insert(piece.exchange.clone().into_owned(), exchanges.len());
                    exchanges.push(Exchange::begin(&piece));
                } else if let Some(index) = indexes.get(piece.exchange.as_ref()) {
                    exchanges[*index].take(piece);
                }
            }
        })?;
        Ok(exchanges)
    }

    /// Calls `take` with each exchange as it ends, then with the unfinished ones. Holds only open exchanges in
    /// memory.
    pub fn each_exchange(&self, take: &mut dyn FnMut(Exchange)) -> Result<(), FileError> {
        let mut open: IndexMap<String, Exchange> = IndexMap::new();
        self.each_recorded_line(&Problems::default(), &mut |_, line| {
            let Some(piece) = record::raw_of(line).and_then(Piece::of) else { return };
            let (id, is_end) = (piece.exchange.clone(), piece.traffic == PieceKind::End);
            if piece.traffic == PieceKind::Request {
                open.insert(id.into_owned(), Exchange::begin(&piece));
            } else if let Some(exchange) = open.get_mut(id.as_ref()) {
                exchange.take(piece);
                if is_end {
                    open.shift_remove(id.as_ref()).into_iter().for_each(&mut *take);
                }
            }
        })?;
        open.into_values().for_each(take);
        Ok(())
    }
}
