//! Builds the entries of one session from its wire lines. Chunks are joined to messages. All updates of a tool become
//! one call and one result.
//!
//! Both protocol versions share this code: a message of either version is accepted at any time. Unknown messages
//! become entries of kind `other`.

mod message_chunk;
mod replay;
mod request;
mod response;
mod terminal;
mod tool;
mod turn;
mod update;

use std::collections::{HashMap, HashSet};

use self::message_chunk::MessageKey;
use self::replay::{HistoryReplay, KnownEntryHashes};
use self::terminal::AcpTerminal;
use self::tool::AcpToolCall;
use super::rpc_message::RpcMessage;
use super::wire::{AcpSide, WireLine};
use super::{AcpSessionFacts, FoldedSession};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};
use steno_model::timestamp::Timestamp;

/// Builds a conversation, one wire line at a time.
#[derive(Clone, Debug, Default)]
pub struct AcpConversationBuilder {
    facts: AcpSessionFacts,
    /// Entries in the order in which they first appeared. Later lines may extend them.
    entries: Vec<Entry>,
    /// Index in `entries` of each message that has an id.
    messages: HashMap<MessageKey, usize>,
    /// Index of the message that chunks without an id extend.
    open_message: Option<usize>,
    tools: HashMap<String, AcpToolCall>,
    /// Terminals by id.
    terminals: HashMap<String, AcpTerminal>,
    /// Requests without a response yet, by sender and request id.
    pending_requests: HashMap<(AcpSide, String), PendingRequest>,
    /// Index of the prompt of the current turn.
    turn_start: Option<usize>,
    /// The replay in progress, if the agent is repeating earlier turns.
    replay: Option<HistoryReplay>,
    /// Hashes of the entries before the last replay.
    known_entries: KnownEntryHashes,
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
pub enum BrokenTurn<'a> {
    /// The agent or the recorder failed, with the reason.
    Failed(&'a str),
    /// The user cancelled the turn.
    Cancelled,
}

/// A request without a response yet.
#[derive(Clone, Debug)]
struct PendingRequest {
    method: String,
    params: Object,
    at: Option<Timestamp>,
    /// Index of the entry made for the request.
    entry: Option<usize>,
}

impl AcpConversationBuilder {
    /// Adds the next line.
    pub fn add_line(&mut self, at: Option<Timestamp>, wire: &WireLine) {
        self.at = at;
        match serde_json::from_slice::<Value>(&wire.bytes) {
            Ok(Value::Array(batch)) => {
                batch.iter().for_each(|message| self.add_message(wire.side, message));
            }
            Ok(message) => self.add_message(wire.side, &message),
            Err(_) if wire.bytes.trim_ascii().is_empty() => {}
            Err(_) => {
                let text = String::from_utf8_lossy(&wire.bytes);
                let role = match wire.side {
                    AcpSide::Client => Role::User,
                    AcpSide::Agent => Role::Assistant,
                };
                self.push_entry(Entry::new(
                    role,
                    EntryKind::Notice,
                    text.trim_end_matches(['\r', '\n']),
                ));
            }
        }
    }

    /// Starts a new connection. Requests of the previous connection stay without a response.
    pub fn begin_connection(&mut self) {
        self.end_turn(None);
        self.pending_requests.clear();
        self.mode = None;
    }

    /// Ends the current turn because the connection broke. Does nothing between turns.
    pub fn interrupt_turn(&mut self, at: Option<Timestamp>, end: BrokenTurn<'_>) {
        if self.turn_start.is_none() {
            return;
        }
        self.at = at.or(self.at);
        match end {
            BrokenTurn::Failed(reason) => {
                self.push_entry(Entry::new(Role::System, EntryKind::Error, reason));
            }
            BrokenTurn::Cancelled => {
                self.add_end_notice("cancelled");
            }
        }
        self.end_turn(None);
    }

    /// Adds a notice about a gap in the recording that ended at `at`. Chunks after the gap start a new message.
    pub fn add_gap(&mut self, at: Timestamp, notice: Entry) {
        (self.at, self.open_message) = (Some(at), None);
        self.push_entry(notice);
    }

    /// Completes all entries and returns them.
    pub fn finish(mut self) -> FoldedSession {
        self.end_turn(None);
        self.finish_replay();
        self.finish_tools();
        self.fill_results();
        self.drop_repeated();
        self.drop_echoes();
        self.entries.retain(|entry| !is_blank_entry(entry));
        (self.facts, self.entries)
    }

    fn add_message(&mut self, side: AcpSide, value: &Value) {
        let message = value.as_object().and_then(RpcMessage::from_object);
        match message {
            Some(RpcMessage::Call { id, method, params }) => {
                let entry = self.handle_request(side, method, params);
                if let Some(id) = id {
                    let (method, params) = (method.to_owned(), params.clone());
                    let request = PendingRequest { method, params, at: self.at, entry };
                    self.pending_requests.insert((side, id), request);
                }
            }
            Some(RpcMessage::Response { id, result }) => {
                if let Some(request) = self.pending_requests.remove(&(side.opposite(), id)) {
                    self.handle_response(request, result);
                }
            }
            None => drop(self.add_unknown(value.clone())),
        }
    }

    /// Whether the connection speaks version 2, in which `null` clears a field.
    fn is_version_2(&self) -> bool {
        self.facts.details.get("version").and_then(Value::as_u64) == Some(2)
    }

    /// Adds an entry and returns its index.
    fn push_entry(&mut self, mut entry: Entry) -> usize {
        entry.created_at = self.at;
        if entry.role == Role::Assistant {
            entry.model.clone_from(&self.model);
        }
        self.entries.push(entry);
        self.entries.len() - 1
    }

    /// Adds an entry of kind `other` that holds the whole message.
    fn add_unknown(&mut self, value: impl Into<Value>) -> usize {
        self.push_entry(crate::decoding::entries::unknown_entry(value))
    }

    /// Adds a notice.
    fn add_notice(&mut self, role: Role, text: impl Into<String>, about: Object) -> usize {
        let mut entry = Entry::new(role, EntryKind::Notice, text);
        entry.metadata = Some(about).filter(|about| !about.is_empty());
        self.push_entry(entry)
    }
}

/// Whether an entry has nothing to show. Agents send empty chunks that only carry metadata.
fn is_blank_entry(entry: &Entry) -> bool {
    let is_said = matches!(entry.kind, EntryKind::Text | EntryKind::Thinking);
    is_said && entry.content.is_empty() && entry.usage.is_none() && entry.role != Role::User
}

/// An object with one field.
fn single_field(name: &str, value: impl Into<Value>) -> Object {
    Object::from_iter([(name.to_owned(), value.into())])
}
