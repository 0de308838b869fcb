//! Assembles recorded API traffic into exchanges.

use std::collections::HashMap;

use indexmap::IndexMap;

use steno_agents::protocols::traffic::piece::TrafficPieceKind;
use steno_agents::protocols::traffic::{ApiExchange, SocketExchanges, TrafficPiece};
use steno_model::durable::FileError;
use steno_vault::sealed::SharedProblems;
use steno_vault::{SessionDir, record};

/// The exchanges that a gateway recorded, in the order of their requests.
pub fn read_exchanges(dir: &SessionDir) -> Result<Vec<ApiExchange>, FileError> {
    let mut exchanges: Vec<ApiExchange> = Vec::new();
    let mut indexes: HashMap<String, usize> = HashMap::new();
    let mut sockets = SocketExchanges::default();
    dir.for_each_recorded_line(&SharedProblems::default(), &mut |_, line| {
        let Some(piece) = record::raw_record_of(line).and_then(TrafficPiece::parse) else {
            return;
        };
        for piece in sockets.push_piece(piece) {
            if piece.traffic == TrafficPieceKind::Request {
                indexes.insert(piece.exchange.clone().into_owned(), exchanges.len());
                exchanges.push(ApiExchange::from_request(&piece));
            } else if let Some(index) = indexes.get(piece.exchange.as_ref()) {
                exchanges[*index].push_piece(piece);
            }
        }
    })?;
    Ok(exchanges)
}

/// Calls `take` with each exchange as it ends, then with the unfinished ones. Holds only open exchanges in
/// memory.
pub fn for_each_exchange(
    dir: &SessionDir,
    take: &mut dyn FnMut(ApiExchange),
) -> Result<(), FileError> {
    let mut open: IndexMap<String, ApiExchange> = IndexMap::new();
    dir.for_each_recorded_line(&SharedProblems::default(), &mut |_, line| {
        let Some(piece) = record::raw_record_of(line).and_then(TrafficPiece::parse) else {
            return;
        };
        let (id, is_end) = (piece.exchange.clone(), piece.traffic == TrafficPieceKind::End);
        if piece.traffic == TrafficPieceKind::Request {
            open.insert(id.into_owned(), ApiExchange::from_request(&piece));
        } else if let Some(exchange) = open.get_mut(id.as_ref()) {
            exchange.push_piece(piece);
            if is_end {
                open.shift_remove(id.as_ref()).into_iter().for_each(&mut *take);
            }
        }
    })?;
    open.into_values().for_each(take);
    Ok(())
}
