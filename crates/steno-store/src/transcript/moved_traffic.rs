//! Moves recorded exchanges to the session that they belong to.
//!
//! Nothing is removed: the owner gets a copy of the traffic pieces, and the recording gets a `moved` piece per
//! exchange. Readers of the recording skip moved exchanges. An interrupted move leaves a partial copy, which the next
//! move completes.

use std::collections::{HashMap, HashSet};

use super::exchanges::for_each_piece;
use super::record_reader::RECORD_DECODER;
use steno_agents::protocols::traffic::attribution::{EndedExchange, EndedExchangeCollector};
use steno_agents::protocols::traffic::piece::TrafficPieceKind;
use steno_agents::protocols::traffic::{TrafficPiece, append_traffic};
use steno_model::durable::FileError;
use steno_model::session::{SessionId, SessionStatus};
use steno_model::timestamp::Clock;
use steno_vault::SessionDir;
use steno_vault::record::{self, API_PROTOCOL, RecordingClosing, RecordingOpening};
use steno_vault::recorder::Recorder;
use steno_vault::sealed::SharedProblems;

/// Maximum bytes of traffic pieces per write.
const MAX_WRITE_BATCH: usize = 1 << 20;

/// The ids of exchanges moved to other sessions.
pub(super) fn moved_exchanges(dir: &SessionDir) -> Result<HashSet<String>, FileError> {
    let mut moved = HashSet::new();
    dir.for_each_recorded_line(&SharedProblems::default(), &mut |_, line| {
        if record::raw_starts_with(line, b"{\"traffic\":\"moved\"") {
            let piece = record::raw_record_of(line).and_then(TrafficPiece::parse);
            moved.extend(piece.map(|piece| piece.exchange.into_owned()));
        }
    })?;
    Ok(moved)
}

/// The session that owns all exchanges of this recording, if there is exactly one.
pub fn traffic_owner(dir: &SessionDir) -> Result<Option<SessionId>, FileError> {
    let (mut exchanges, mut moved) = (HashSet::new(), HashMap::new());
    if dir.is_imported()? {
        return Ok(None);
    }
    dir.for_each_recorded_line(&SharedProblems::default(), &mut |_, line| {
        let is_moved = record::raw_starts_with(line, b"{\"traffic\":\"moved\"");
        if !is_moved && !record::raw_starts_with(line, b"{\"traffic\":\"request\"") {
            return;
        }
        let Some(piece) = record::raw_record_of(line).and_then(TrafficPiece::parse) else {
            return;
        };
        let exchange = piece.exchange.into_owned();
        match piece.session {
            Some(session) => drop(moved.insert(exchange, session)),
            None => drop(exchanges.insert(exchange)),
        }
    })?;
    let is_all = exchanges.iter().all(|exchange| moved.contains_key(exchange));
    let owners: HashSet<SessionId> = moved.into_values().collect();
    let mut owners = owners.into_iter();
    Ok(owners.next().filter(|_| is_all && owners.next().is_none()))
}

/// The finished exchanges, without moved ones. If no recorder runs any more, unfinished exchanges count as ended.
pub(crate) fn ended_exchanges(dir: &SessionDir) -> Result<Vec<EndedExchange>, FileError> {
    let moved = moved_exchanges(dir)?;
    let mut exchanges = EndedExchangeCollector::default();
    for_each_piece(dir, &mut |piece| {
        if !moved.contains(piece.exchange.as_ref()) {
            exchanges.push_piece(piece);
        }
    })?;
    let is_live = dir.is_being_recorded()?;
    Ok(if is_live { exchanges.ended } else { exchanges.into_all() })
}

/// Moves exchanges to the session of an agent with session files.
pub(crate) fn move_exchanges(
    dir: &SessionDir,
    exchanges: &HashSet<String>,
    owner: &SessionDir,
    clock: &Clock,
) -> Result<(), FileError> {
    copy_exchanges(dir, exchanges, owner, clock)?;
    let recorder =
        Recorder::reopen(dir.clone(), &RecordingOpening::default(), clock.clone(), RECORD_DECODER)?;
    let moved: Vec<_> =
        exchanges.iter().map(|id| TrafficPiece::new_moved(id, owner.id().clone())).collect();
    append_traffic(&recorder, &moved)?;
    recorder.detach()
}

fn copy_exchanges(
    dir: &SessionDir,
    exchanges: &HashSet<String>,
    owner: &SessionDir,
    clock: &Clock,
) -> Result<(), FileError> {
    // Pieces that an interrupted move has copied.
    let mut copied: HashMap<String, usize> = HashMap::new();
    for_each_piece(owner, &mut |piece| {
        *copied.entry(piece.exchange.into_owned()).or_default() += 1;
    })?;
    let opening = RecordingOpening {
        agent: owner.agent().to_owned(),
        protocol: Some(API_PROTOCOL.to_owned()),
        ..RecordingOpening::default()
    };
    let recorder = Recorder::open(owner.clone(), &opening, clock.clone(), RECORD_DECODER)?;
    let (mut pieces, mut size, mut written) = (Vec::new(), 0, Ok(()));
    for_each_piece(dir, &mut |piece| {
        let is_wanted = match piece.traffic {
            TrafficPieceKind::Settings => true,
            TrafficPieceKind::Moved => false,
            _ => exchanges.contains(piece.exchange.as_ref()),
        };
        let earlier = copied.get_mut(piece.exchange.as_ref()).filter(|count| **count > 0);
        match earlier {
            Some(count) if is_wanted => *count -= 1,
            _ if is_wanted && written.is_ok() => {
                size += piece.line_size();
                pieces.push(piece);
            }
            _ => {}
        }
        if size >= MAX_WRITE_BATCH {
            written = append_traffic(&recorder, &pieces);
            (size, pieces) = (0, Vec::new());
        }
    })?;
    written?;
    append_traffic(&recorder, &pieces)?;
    recorder.close(&RecordingClosing { status: SessionStatus::Completed, reason: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::ReadTranscript;
    use steno_model::entry::Role;
    use steno_vault::{SessionBundle, Vault};

    fn pieces(exchange: &'static str) -> [TrafficPiece<'static>; 4] {
        let request = TrafficPiece {
            method: Some("POST".into()),
            path: Some("/v1/messages".into()),
            ..TrafficPiece::new(TrafficPieceKind::Request, exchange)
        };
        let response = TrafficPiece {
            status: Some(200),
            ..TrafficPiece::new(TrafficPieceKind::Response, exchange)
        };
        [
            request.with_bytes(br#"{"messages":[{"role":"user","content":"Hello"}]}"#),
            response,
            TrafficPiece::new_chunk(
                exchange,
                1,
                br#"{"role":"assistant","content":[{"type":"text","text":"Hello too"}]}"#,
            ),
            TrafficPiece::new_end(exchange, 2, None),
        ]
    }

    fn record(dir: &SessionDir, pieces: &[TrafficPiece<'_>]) {
        let protocol = Some(API_PROTOCOL.to_owned());
        let opening = RecordingOpening { protocol, ..RecordingOpening::default() };
        let recorder =
            Recorder::open(dir.clone(), &opening, Clock::system(), RECORD_DECODER).unwrap();
        append_traffic(&recorder, pieces).unwrap();
        recorder
            .close(&RecordingClosing { status: SessionStatus::Completed, reason: None })
            .unwrap();
    }

    fn entry_texts(dir: &SessionDir) -> Vec<(Role, String)> {
        let entries = dir.read_transcript().unwrap().entries;
        entries.into_iter().map(|entry| (entry.role, entry.content)).collect()
    }

    #[test]
    fn a_move_that_was_interrupted_is_completed() {
        let home = tempfile::tempdir().unwrap();
        let vault = Vault::new(home.path());
        let session = |id: &str| vault.session_dir(&"a".parse().unwrap(), &id.parse().unwrap());
        for copied in 0..=4 {
            let (recording, owner) =
                (session(&format!("r{copied}")), session(&format!("o{copied}")));
            record(&recording, &[&pieces("x")[..], &pieces("y")[..]].concat());
            // An interrupted move copied this many pieces.
            record(&owner, &pieces("x")[..copied]);
            let before = entry_texts(&recording);
            assert_eq!(before.len(), 4, "{before:?}");
            move_exchanges(&recording, &HashSet::from(["x".to_owned()]), &owner, &Clock::system())
                .unwrap();
            let hello =
                [(Role::User, "Hello".to_owned()), (Role::Assistant, "Hello too".to_owned())];
            assert_eq!(entry_texts(&owner), hello, "after {copied} pieces");
            assert_eq!(entry_texts(&recording), hello);
            assert_eq!(
                crate::transcript::read_exchanges(&recording).unwrap().exchanges.len(),
                2,
                "nothing is removed"
            );
            assert_eq!(traffic_owner(&recording).unwrap(), None);
            move_exchanges(&recording, &HashSet::from(["y".to_owned()]), &owner, &Clock::system())
                .unwrap();
            assert!(entry_texts(&recording).is_empty());
            assert_eq!(traffic_owner(&recording).unwrap().as_ref(), Some(owner.id()));
            assert_eq!(
                recording.read_transcript().unwrap().session.status,
                SessionStatus::Completed
            );
        }
    }

    #[test]
    fn a_recording_makes_a_session_larger_than_its_files() {
        let home = tempfile::tempdir().unwrap();
        let vault = Vault::new(home.path().join("vault"));
        let dir = vault.session_dir(&"a".parse().unwrap(), &"s".parse().unwrap());
        let file = home.path().join("s.jsonl");
        std::fs::write(&file, "{}\n").unwrap();
        dir.keep_session(&SessionBundle::from_file(&file)).unwrap();
        assert!(!dir.has_more_than(2).unwrap());
        record(&dir, &pieces("x"));
        assert!(dir.has_more_than(2).unwrap());
    }
}
