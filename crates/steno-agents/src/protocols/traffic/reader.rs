//! Reads a file of traffic pieces, such as a recording exported from the vault.

use super::piece::TrafficPiece;
use super::traffic_decoder::TrafficDecoder;
use crate::agent::Agent;
use crate::decoding::document;
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_lines::JsonLines;
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::problem::Problem;
use steno_model::session::{Session, SessionId};
use steno_vault::SessionBundle;

/// The agent of a recording that names none.
pub const AGENT_NAME: &str = "gateway";

/// Finds and reads recordings.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_recordings, read: read_recording };

/// What is known about recordings of the gateway.
pub const AGENT: Agent = Agent::new("Gateway recordings", &READER);

fn find_recordings(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    document::find_documents(tree, |head| {
        let kind = head.field_start("traffic").unwrap_or_default();
        kind.starts_with("\"settings\"") || kind.starts_with("\"request\"")
    })
}

fn read_recording(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let source = document::only_file(bundle)?;
    let first =
        JsonLines::open(source)?.flatten().next().map(|line| line.bytes).unwrap_or_default();
    let name = blake3::hash(&first).to_hex()[..32].to_owned();
    let mut output = EntryEmitter::new(AGENT_NAME, &name, emit);
    let mut decoder = TrafficDecoder::default();
    for line in JsonLines::open(source)? {
        let entries = match line {
            Err(problem) => {
                output.emit_problem(problem);
                continue;
            }
            Ok(line) => match TrafficPiece::parse(&line.bytes) {
                Some(piece) => decoder.decode_piece(piece),
                None => {
                    let problem =
                        Problem::at_line(source.path(), line.number, "not a traffic record");
                    output.emit_problem(problem);
                    continue;
                }
            },
        };
        entries.into_iter().for_each(|entry| output.emit_entry(entry));
    }
    decoder.finish().into_iter().for_each(|entry| output.emit_entry(entry));
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, &name), AGENT_NAME);
    session.totals.cost = decoder.total_reported_cost();
    Ok(session)
}
