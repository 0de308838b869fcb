//! The traffic of a recorded session, put together to exchanges.

use std::collections::HashMap;

use super::SessionDir;
use super::record;
use super::sealed::Problems;
use crate::durable::FileError;
use crate::traffic::piece::PieceKind;
use crate::traffic::{Exchange, Piece};

impl SessionDir {
    /// The exchanges that a gateway recorded, in the order of their requests.
    pub fn exchanges(&self) -> Result<Vec<Exchange>, FileError> {
        let mut exchanges: Vec<Exchange> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        self.each_recorded_line(&Problems::default(), &mut |_, line| {
            let Some(piece) = record::raw_of(line).and_then(Piece::of) else { return };
            if piece.traffic == PieceKind::Request {
                places.insert(piece.exchange.clone().into_owned(), exchanges.len());
                exchanges.push(Exchange::begin(&piece));
            } else if let Some(place) = places.get(piece.exchange.as_ref()) {
                exchanges[*place].take(piece);
            }
        })?;
        Ok(exchanges)
    }
}
