//! Folds the lines of one session into what was said and done: chunks become messages, and all that is told of a tool
//! one call and one result.
//!
//! Both versions of the protocol are one: whatever may be sent is taken as it comes, and what is not known survives
//! as kind `other`.

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

/// One session's wire while it is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fold {
    facts: Facts,
    /// In the order in which each was first heard of; later lines may add to them.
    entries: Vec<Entry>,
    /// The messages that have a name, and where they stand.
    messages: HashMap<Key, usize>,
    /// The message that chunks without a name go on with.
    open: Option<usize>,
    tools: HashMap<String, Tool>,
    /// Terminals by their names.
    terminals: HashMap<String, Terminal>,
    /// Requests that wait for an answer, by who asked and under which id.
    asked: HashMap<(Side, String), Asked>,
    /// The prompt that is being answered, and where the turn began.
    turn: Option<usize>,
    /// What the agent says of earlier turns.
    replay: Option<Replay>,
    /// What is known of the entries before the last replay.
    known_names: KnownNames,
    /// Places of entries that only repeated others. They are emptied and dropped at the end, so that no place moves.
    repeated: HashSet<usize>,
    /// Compactions by their ids, and where they stand.
    compactions: HashMap<String, usize>,
    /// The `_meta` values that each entry has, by the entry's place and their hash.
    noted_metas: HashSet<(usize, blake3::Hash)>,
    model: Option<String>,
    /// The mode that the client has set on this connection.
    mode: Option<String>,
    at: Option<Timestamp>,
}

/// Why a turn was never ended by the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BrokenTurn<'a> {
    /// The agent or the recorder failed.
    Failed(&'a str),
    /// The user did not want to wait for it.
    Cancelled,
}

/// A request that waits for its answer.
#[derive(Clone, Debug)]
struct Asked {
    method: String,
    params: Object,
    at: Option<Timestamp>,
    /// The entry that tells of it.
    entry: Option<usize>,
}

impl Fold {
    /// Takes one more line.
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

    /// A new connection begins: nobody will answer what was asked in the last one.
    pub(crate) fn connected(&mut self) {
        self.end_turn(None);
        self.asked.clear();
        self.mode = None;
    }

    /// The connection has ended in the middle of a turn, for a reason. After a completed turn there is nothing to add.
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

    /// Adds the notice of a gap in the record that ended at `at`. What is said after it does not continue what was said
    /// before it.
    pub(crate) fn add_gap(&mut self, at: Timestamp, notice: Entry) {
        (self.at, self.open) = (Some(at), None);
        self.push(notice);
    }

    /// What was said, once all was heard.
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
                    let asked = Asked { method, params, at: self.at, entry };
                    self.asked.insert((side, id), asked);
                }
            }
            Some(Message::Answer { id, result }) => {
                if let Some(asked) = self.asked.remove(&(side.other(), id)) {
                    self.answer(asked, result);
                }
            }
            None => drop(self.other(value.clone())),
        }
    }

    /// Whether version 2 is spoken, in which `null` empties a field.
    fn is_version_2(&self) -> bool {
        self.facts.about.get("version").and_then(Value::as_u64) == Some(2)
    }

    /// Adds an entry, and gives where it stands.
    fn push(&mut self, mut entry: Entry) -> usize {
        entry.created_at = self.at;
        if entry.role == Role::Assistant {
            entry.model.clone_from(&self.model);
        }
        self.entries.push(entry);
        self.entries.len() - 1
    }

    /// Adds what is not known, whole.
    fn other(&mut self, value: impl Into<Value>) -> usize {
        self.push(super::super::entries::unknown(value))
    }

    /// Adds something that is told rather than said.
    fn notice(&mut self, role: Role, text: impl Into<String>, about: Object) -> usize {
        let mut entry = Entry::new(role, Kind::Notice, text);
        entry.metadata = Some(about).filter(|about| !about.is_empty());
        self.push(entry)
    }
}

/// Whether nothing would be shown: agents send such chunks to carry something beside them.
fn is_empty(entry: &Entry) -> bool {
    let is_said = matches!(entry.kind, Kind::Text | Kind::Thinking);
    is_said && entry.content.is_empty() && entry.usage.is_none() && entry.role != Role::User
}

/// An object with one field.
fn about(name: &str, value: impl Into<Value>) -> Object {
    Object::from_iter([(name.to_owned(), value.into())])
}
