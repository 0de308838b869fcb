//! Builds the entries of one session from its wire lines. Chunks are joined to messages. All updates of a tool become
//! one call and one result.
//!
//! Both protocol versions share this code: a message of either version is accepted at any time. Unknown messages
//! become entries of kind `other`.

mod answer;
mod call;
mod replay;
mod saying;
mod terminal;
mod tool;
mod turn;
mod update;

use std::collections::{HashMap, HashSet};

use self::replay::{KnownNames, Replay};
use self::saying::Key;
use self::terminal::Terminal;
use self::tool::Tool;
use super::message::Message;
use super::wire::{Side, Wire};
use super::{Facts, Folded};
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Value};
use crate::timestamp::Timestamp;

/// Builds a conversation, one wire line at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fold {
    facts: Facts,
    /// Entries in the order in which they first appeared. Later lines may extend them.
    entries: Vec<Entry>,
    /// Index in `entries` of each message that has an id.
    messages: HashMap<Key, usize>,
    /// Index of the message that chunks without an id extend.
    open: Option<usize>,
    tools: HashMap<String, Tool>,
    /// Terminals by id.
    terminals: HashMap<String, Terminal>,
    /// Requests without a response yet, by sender and request id.
    asked: HashMap<(Side, String), Asked>,
    /// Index of the prompt of the current turn.
    turn: Option<usize>,
    /// The replay in progress, if the agent is repeating earlier turns.
    replay: Option<Replay>,
    /// Hashes of the entries before the last replay.
    known_names: KnownNames,
    /// Indices of entries that only repeat others. They are emptied at once and dropped at the end, so indices stay
    /// valid.
    repeated: HashSet<usize>,
    /// Index of each compaction, by its id.
    compactions: HashMap<String, usize>,
    /// The `_meta` values of each entry, by entry index and hash of the value.
    noted_metas: HashSet<(usize, blake3::Hash)>,
    model: Option<String>,
    /// The mode that the client has set on this connection.
    mode: Option<String>,
    at: Option<Timestamp>,
}

/// Why a turn ended without a response of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BrokenTurn<'a> {
    /// The agent or the recorder failed, with the reason.
    Failed(&'a str),
    /// The user cancelled the turn.
    Cancelled,
}

/// A request without a response yet.
#[derive(Clone, Debug)]
struct Asked {
    method: String,
    params: Object,
    at: Option<Timestamp>,
    /// Index of the entry made for the request.
    entry: Option<usize>,
}

impl Fold {
    /// Adds the next line.
    pub(crate) fn take(&mut self, at: Option<Timestamp>, wire: &Wire) {
        self.at = at;
        match serde_json::from_slice::<Value>(&wire.bytes) {
            Ok(Value::Array(batch)) => {
                batch.iter().for_each(|message| self.message(wire.side, message));
            }
            Ok(message) => self.message(wire.side, &message),
            Err(_) if wire.bytes.trim_ascii().is_empty() => {}
            Err(_) => {
                let text = String::from_utf8_lossy(&wire.bytes);
                let role = match wire.side {
                    Side::Client => Role::User,
                    Side::Agent => Role::Assistant,
                };
                self.push(Entry::new(role, Kind::Notice, text.trim_end_matches(['\r', '\n'])));
            }
        }
    }

    /// Starts a new connection. Requests of the previous connection stay without a response.
    pub(crate) fn connected(&mut self) {
        self.end_turn(None);
        self.asked.clear();
        self.mode = None;
    }

    /// Ends the current turn because the connection broke. Does nothing between turns.
    pub(crate) fn break_turn(&mut self, at: Option<Timestamp>, end: BrokenTurn<'_>) {
        if self.turn.is_none() {
            return;
        }
        self.at = at.or(self.at);
        match end {
            BrokenTurn::Failed(reason) => {
                self.push(Entry::new(Role::System, Kind::Error, reason));
            }
            BrokenTurn::Cancelled => {
                self.end_notice("cancelled");
            }
        }
        self.end_turn(None);
    }

    /// Adds a notice about a gap in the recording that ended at `at`. Chunks after the gap start a new message.
    pub(crate) fn add_gap(&mut self, at: Timestamp, notice: Entry) {
        (self.at, self.open) = (Some(at), None);
        self.push(notice);
    }

    /// Completes all entries and returns them.
    pub(crate) fn finish(mut self) -> Folded {
        self.end_turn(None);
        self.settle_replay();
        self.settle_tools();
        self.fill_results();
        self.drop_repeated();
        self.drop_echoes();
        self.entries.retain(|entry| !is_empty(entry));
        (self.facts, self.entries)
    }

    fn message(&mut self, side: Side, value: &Value) {
        let message = value.as_object().and_then(Message::of);
        match message {
            Some(Message::Call { id, method, params }) => {
                let entry = self.call(side, method, params);
                if let Some(id) = id {
                    let (method, params) = (method.to_owned(), params.clone());
                    let request = Asked { method, params, at: self.at, entry };
                    self.asked.insert((side, id), request);
                }
            }
            Some(Message::Answer { id, result }) => {
                if let Some(request) = self.asked.remove(&(side.other(), id)) {
                    self.answer(request, result);
                }
            }
            None => drop(self.other(value.clone())),
        }
    }

    /// Whether the connection speaks version 2, in which `null` clears a field.
    fn is_version_2(&self) -> bool {
        self.facts.about.get("version").and_then(Value::as_u64) == Some(2)
    }

    /// Adds an entry and returns its index.
    fn push(&mut self, mut entry: Entry) -> usize {
        entry.created_at = self.at;
        if entry.role == Role::Assistant {
            entry.model.clone_from(&self.model);
        }
        self.entries.push(entry);
        self.entries.len() - 1
    }

    /// Adds an entry of kind `other` that holds the whole message.
    fn other(&mut self, value: impl Into<Value>) -> usize {
        self.push(super::super::entries::unknown(value))
    }

    /// Adds a notice.
    fn notice(&mut self, role: Role, text: impl Into<String>, about: Object) -> usize {
        let mut entry = Entry::new(role, Kind::Notice, text);
        entry.metadata = Some(about).filter(|about| !about.is_empty());
        self.push(entry)
    }
}

/// Whether an entry has nothing to show. Agents send empty chunks that only carry metadata.
fn is_empty(entry: &Entry) -> bool {
    let is_said = matches!(entry.kind, Kind::Text | Kind::Thinking);
    is_said && entry.content.is_empty() && entry.usage.is_none() && entry.role != Role::User
}

/// An object with one field.
fn about(name: &str, value: impl Into<Value>) -> Object {
    Object::from_iter([(name.to_owned(), value.into())])
}
