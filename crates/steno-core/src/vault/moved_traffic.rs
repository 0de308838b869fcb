//! Moves recorded exchanges to the session that they belong to.
//!
//! Nothing is removed: the owner gets a copy of the traffic pieces, and the recording gets a `moved` piece per
//! exchange. Readers of the recording skip moved exchanges. An interrupted move leaves a partial copy, which the next
//! move completes.

use std::collections::{HashMap, HashSet};

use super::SessionDir;
use super::record::{self, Closing, Opening};
use super::recorder::Recorder;
use super::sealed::Problems;
use crate::durable::FileError;
use crate::session::{SessionId, Status};
use crate::timestamp::Clock;
use crate::traffic::attribution::{EndedExchange, EndedExchanges};
use crate::traffic::piece::PieceKind;
use crate::traffic::{PROTOCOL, Piece};

/// Maximum bytes of traffic pieces per write.
const WRITTEN_AT_ONCE: usize = 1 << 20;

impl SessionDir {
    /// The ids of exchanges moved to other sessions.
    pub(super) fn moved_exchanges(&self) -> Result<HashSet<String>, FileError> {
        let mut moved = HashSet::new();
        self.each_recorded_line(&Problems::default(), &mut |_, line| {
            if record::begins_raw(line, b"{\"traffic\":\"moved\"") {
                let piece = record::raw_of(line).and_then(Piece::of);
                moved.extend(piece.map(|piece| piece.exchange.into_owned()));
            }
        })?;
        Ok(moved)
    }

    /// The session that owns all exchanges of this recording, if there is exactly one.
    pub fn owner_of_traffic(&self) -> Result<Option<SessionId>, FileError> {
        let (mut exchanges, mut moved) = (HashSet::new(), HashMap::new());
        if self.is_imported()? {
            return Ok(None);
        }
        self.each_recorded_line(&Problems::default(), &mut |_, line| {
            let is_moved = record::begins_raw(line, b"{\"traffic\":\"moved\"");
            if !is_moved && !record::begins_raw(line, b"{\"traffic\":\"request\"") {
                return;
            }
            let Some(piece) = record::raw_of(line).and_then(Piece::of) else { return };
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
    pub(crate) fn ended_exchanges(&self) -> Result<Vec<EndedExchange>, FileError> {
        let moved = self.moved_exchanges()?;
        let mut exchanges = EndedExchanges::default();
        self.each_piece(&mut |piece| {
            if !moved.contains(piece.exchange.as_ref()) {
                exchanges.take(piece);
            }
        })?;
        let is_live = self.is_being_recorded()?;
        Ok(if is_live { exchanges.all } else { exchanges.with_open() })
    }

    /// Moves exchanges to the session of an agent with session files.
    pub(crate) fn move_exchanges(
        &self,
        exchanges: &HashSet<String>,
        owner: &SessionDir,
        clock: &Clock,
    ) -> Result<(), FileError> {
        self.copy_exchanges(exchanges, owner, clock)?;
        let recorder = Recorder::reopen(self.clone(), &Opening::default(), clock.clone())?;
        let moved: Vec<_> =
            exchanges.iter().map(|id| Piece::moved(id, owner.id().clone())).collect();
        recorder.append_traffic(&moved)?;
        recorder.detach()
    }

    fn copy_exchanges(
        &self,
        exchanges: &HashSet<String>,
        owner: &SessionDir,
        clock: &Clock,
    ) -> Result<(), FileError> {
        // Pieces that an interrupted move has copied.
        let mut copied: HashMap<String, usize> = HashMap::new();
        owner.each_piece(&mut |piece| {
            *copied.entry(piece.exchange.into_owned()).or_default() += 1;
        })?;
        let opening = Opening {
            agent: owner.agent().to_owned(),
            protocol: Some(PROTOCOL.to_owned()),
            ..Opening::default()
        };
        let recorder = Recorder::open(owner.clone(), &opening, clock.clone())?;
        let (mut pieces, mut size, mut written) = (Vec::new(), 0, Ok(()));
        self.each_piece(&mut |piece| {
            let is_wanted = match piece.traffic {
                PieceKind::Settings => true,
                PieceKind::Moved => false,
                _ => exchanges.contains(piece.exchange.as_ref()),
            };
            let earlier = copied.get_mut(piece.exchange.as_ref()).filter(|count| **count > 0);
            match earlier {
                Some(count) if is_wanted => *count -= 1,
                _ if is_wanted && written.is_ok() => {
                    size += piece.size();
                    pieces.push(piece);
                }
                _ => {}
            }
            if size >= WRITTEN_AT_ONCE {
                written = recorder.append_traffic(&pieces);
                (size, pieces) = (0, Vec::new());
            }
        })?;
        written?;
        recorder.append_traffic(&pieces)?;
        recorder.close(&Closing { status: Status::Completed, reason: None })
    }

    fn each_piece(&self, take: &mut dyn FnMut(Piece<'static>)) -> Result<(), FileError> {
        self.each_recorded_line(&Problems::default(), &mut |_, line| {
            if record::begins_raw(line, b"{\"traffic\":\"") {
                record::raw_of(line).and_then(Piece::of).into_iter().for_each(&mut *take);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Role;
    use crate::vault::Vault;
    use steno_vault::Bundle;

    fn pieces(exchange: &'static str) -> [Piece<'static>; 4] {
        let request = Piece {
            method: Some("POST".into()),
            path: Some("/v1/messages".into()),
            ..Piece::new(PieceKind::Request, exchange)
        };
        let response = Piece { status: Some(200), ..Piece::new(PieceKind::Response, exchange) };
        [
            request.with_bytes(br#"{"messages":[{"role":"user","content":"Hello"}]}"#),
            response,
            Piece::chunk(
                exchange,
                1,
                br#"{"role":"assistant","content":[{"type":"text","text":"Hello too"}]}"#,
            ),
            Piece::end(exchange, 2, None),
        ]
    }

    fn record(dir: &SessionDir, pieces: &[Piece<'_>]) {
        let protocol = Some(PROTOCOL.to_owned());
        let opening = Opening { protocol, ..Opening::default() };
        let recorder = Recorder::open(dir.clone(), &opening, Clock::system()).unwrap();
        recorder.append_traffic(pieces).unwrap();
        recorder.close(&Closing { status: Status::Completed, reason: None }).unwrap();
    }

    fn said(dir: &SessionDir) -> Vec<(Role, String)> {
        let entries = dir.read().unwrap().entries;
        entries.into_iter().map(|entry| (entry.role, entry.content)).collect()
    }

    #[test]
    fn a_move_that_was_interrupted_is_completed() {
        let home = tempfile::tempdir().unwrap();
        let vault = Vault::new(home.path());
        let session = |id: &str| vault.session(&"a".parse().unwrap(), &id.parse().unwrap());
        for copied in 0..=4 {
            let (recording, owner) =
                (session(&format!("r{copied}")), session(&format!("o{copied}")));
            record(&recording, &[&pieces("x")[..], &pieces("y")[..]].concat());
            // An interrupted move copied this many pieces.
            record(&owner, &pieces("x")[..copied]);
            let before = said(&recording);
            assert_eq!(before.len(), 4, "{before:?}");
            recording
                .move_exchanges(&HashSet::from(["x".to_owned()]), &owner, &Clock::system())
                .unwrap();
            let hello =
                [(Role::User, "Hello".to_owned()), (Role::Assistant, "Hello too".to_owned())];
            assert_eq!(said(&owner), hello, "after {copied} pieces");
            assert_eq!(said(&recording), hello);
            assert_eq!(recording.exchanges().unwrap().len(), 2, "nothing is removed");
            assert_eq!(recording.owner_of_traffic().unwrap(), None);
            recording
                .move_exchanges(&HashSet::from(["y".to_owned()]), &owner, &Clock::system())
                .unwrap();
            assert!(said(&recording).is_empty());
            assert_eq!(recording.owner_of_traffic().unwrap().as_ref(), Some(owner.id()));
            assert_eq!(recording.read().unwrap().session.status, Status::Completed);
        }
    }

    #[test]
    fn what_was_recorded_is_more_than_any_number_of_files() {
        let home = tempfile::tempdir().unwrap();
        let vault = Vault::new(home.path().join("vault"));
        let dir = vault.session(&"a".parse().unwrap(), &"s".parse().unwrap());
        let file = home.path().join("s.jsonl");
        std::fs::write(&file, "{}\n").unwrap();
        dir.keep_all(&Bundle::file(&file)).unwrap();
        assert!(!dir.has_more_than(2).unwrap());
        record(&dir, &pieces("x"));
        assert!(dir.has_more_than(2).unwrap());
    }
}
