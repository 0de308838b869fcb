//! Reads a file of traffic pieces, such as a recording exported from the vault.

use super::piece::Piece;
use super::telling::Telling;
use crate::agent::document;
use crate::agent::json_lines::JsonLines;
use crate::durable::FileError;
use crate::entry::Numbering;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Item, Reader};
use crate::problem::Problem;
use crate::session::{Session, SessionId};
use steno_vault::Bundle;

/// The agent of a recording that names none.
pub const AGENT: &str = "gateway";

/// Finds and reads recordings.
pub const READER: Reader = Reader { agent: AGENT, find, read };

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    document::find(tree, |head| {
        let kind = head.field("traffic").unwrap_or_default();
        kind.starts_with("\"settings\"") || kind.starts_with("\"request\"")
    })
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let source = document::only_source(bundle)?;
    let first = JsonLines::of(source)?.flatten().next().map(|line| line.bytes).unwrap_or_default();
    let name = blake3::hash(&first).to_hex()[..32].to_owned();
    let mut numbering = Numbering::new(AGENT, &name);
    let mut telling = Telling::default();
    for line in JsonLines::of(source)? {
        let entries = match line {
            Err(problem) => {
                emit(Item::Problem(problem));
                continue;
            }
            Ok(line) => match Piece::of(&line.bytes) {
                Some(piece) => telling.take(piece),
                None => {
                    let problem = Problem::at(source.path(), line.number, "not a traffic record");
                    emit(Item::Problem(problem));
                    continue;
                }
            },
        };
        for mut entry in entries {
            numbering.assign(&mut entry);
            emit(Item::Entry(Box::new(entry)));
        }
    }
    for mut entry in telling.finish() {
        numbering.assign(&mut entry);
        emit(Item::Entry(Box::new(entry)));
    }
    let mut session = Session::new(SessionId::for_native(AGENT, &name), AGENT);
    session.totals.cost = telling.stated_cost();
    Ok(session)
}
