//! Assembles recorded API traffic into exchanges.

use std::collections::HashMap;
use std::sync::PoisonError;

use indexmap::IndexMap;

use steno_agents::protocols::traffic::piece::TrafficPieceKind;
use steno_agents::protocols::traffic::{ApiExchange, SocketExchanges, TrafficPiece};
use steno_model::durable::FileError;
use steno_model::problem::Problem;
use steno_vault::SessionDir;
use steno_vault::record::{LogLineContent, RecordError};
use steno_vault::record_cursor::RecordCursor;
use steno_vault::sealed::SharedProblems;

/// The exchanges of a recording.
#[derive(Debug)]
pub struct RecordedExchanges {
    /// The exchanges, in the order of their requests.
    pub exchanges: Vec<ApiExchange>,
    /// Damage of the recording.
    pub problems: Vec<Problem>,
}

/// The exchanges that a gateway recorded, in the order of their requests.
pub fn read_exchanges(dir: &SessionDir) -> Result<RecordedExchanges, FileError> {
    let mut exchanges: Vec<ApiExchange> = Vec::new();
    let mut indexes: HashMap<String, usize> = HashMap::new();
    let mut sockets = SocketExchanges::default();
    let problems = for_each_piece(dir, &mut |piece| {
        for piece in sockets.push_piece(piece) {
            if piece.traffic == TrafficPieceKind::Request {
                indexes.insert(piece.exchange.clone().into_owned(), exchanges.len());
                exchanges.push(ApiExchange::from_request(&piece));
            } else if let Some(index) = indexes.get(piece.exchange.as_ref()) {
                exchanges[*index].push_piece(piece);
            }
        }
    })?;
    Ok(RecordedExchanges { exchanges, problems })
}

/// Calls `take` with each exchange as it ends, then with the unfinished ones. Holds only open exchanges in memory.
/// Returns the damage of the recording.
pub fn for_each_exchange(
    dir: &SessionDir,
    take: &mut dyn FnMut(ApiExchange),
) -> Result<Vec<Problem>, FileError> {
    let mut open: IndexMap<String, ApiExchange> = IndexMap::new();
    let problems = for_each_piece(dir, &mut |piece| {
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
    Ok(problems)
}

/// Calls `take` with each traffic piece of the lines that are as they were recorded. Returns the damage of the
/// recording.
pub(super) fn for_each_piece(
    dir: &SessionDir,
    take: &mut dyn FnMut(TrafficPiece<'static>),
) -> Result<Vec<Problem>, FileError> {
    let (frame_problems, mut problems) = (SharedProblems::default(), Vec::new());
    let (mut cursor, mut number) = (RecordCursor::new(dir.id(), dir.agent()), 0);
    dir.for_each_recorded_line(&frame_problems, &mut |path, line| {
        number += 1;
        match cursor.parse_line(line) {
            Ok(LogLineContent::Record { raw, .. }) => {
                TrafficPiece::parse(raw).into_iter().for_each(&mut *take);
            }
            Err(error @ RecordError::Damaged) => {
                problems.push(Problem::damage_at_line(path, number, error));
            }
            Ok(_) | Err(_) => {}
        }
    })?;
    problems.append(&mut frame_problems.lock().unwrap_or_else(PoisonError::into_inner));
    for fault in dir.find_recording_faults()? {
        if !problems.iter().any(|known| known.path == fault.path) {
            problems.push(fault);
        }
    }
    Ok(problems)
}
