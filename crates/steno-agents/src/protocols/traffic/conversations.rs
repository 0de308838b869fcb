//! Finds the conversation that a request continues.
//!
//! A request repeats the whole history. The tracker splits it into comparable parts and hashes every prefix of them;
//! the longest known prefix identifies the conversation. Instructions are not compared, because agents change them
//! during a conversation. Nor are thoughts, because clients seldom send them back.
//!
//! # Example
//! `U` is a prompt or tool result, `A` an answer. Requests in this order:
//!
//! | request | answer | conversation | new entries |
//! |---|---|---|---|
//! | `U1` | `A1` | a new one, in the primary source | `U1` |
//! | `U1 A1 U2` | fails | the first: its history so far was `U1 A1` | `U2` |
//! | `U1 A1 U2` | `A2` | the first: a failed answer does not extend the history | none |
//! | `U1 A1 U2 x U3` | `A3` | the first: `x` replaces `A2`, which this client sends back changed | `U3` |
//! | `U1 A1 U4` | `A4` | a fork in `subagent:1`: it leaves the first in its middle | `U4` |
//! | `V1`, while another request is unanswered | `B1` | a new one, in `subagent:2` | `V1` |
//! | `V1 B1 V2` | `B2` | that of `V1` | `V2` |
//!
//! A conversation that begins while none waits for an answer or a tool result is in the primary source. One that would
//! continue in the primary source while another one there waits gets a subagent source instead: its entries would come
//! between a prompt and its answer.

use std::collections::{HashMap, HashSet};

use blake3::{Hash, Hasher};

use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role};
use steno_model::json::{JsonStyle, sort_keys};

/// An index into the list of conversations.
pub(super) type ConversationIndex = usize;

/// The conversation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConversationMatch {
    /// The conversation's index.
    pub(super) conversation: ConversationIndex,
    /// How many entries of the request the conversation already has.
    pub(super) known_entries: usize,
    /// The conversation that this one forked from.
    pub(super) fork_of: Option<ConversationIndex>,
}

/// All conversations so far, found by prefix hash.
#[derive(Clone, Debug, Default)]
pub(super) struct ConversationTracker {
    conversations: Vec<TrackedConversation>,
    /// Conversations by the hash of any prefix of their history.
    by_prefix: HashMap<Hash, ConversationIndex>,
    /// Conversations by the hash of their whole history.
    by_tip: HashMap<Hash, ConversationIndex>,
    /// Conversations by the hash of their last request.
    by_last_request: HashMap<Hash, ConversationIndex>,
    /// Hashes of the histories that end with a response, by response id.
    response_hashes: HashMap<String, Hash>,
    /// Number of subagent sources so far.
    subagent_count: usize,
    /// How many conversations wait for an answer or a tool result.
    busy_count: usize,
    /// How many of those are in the primary source.
    busy_in_primary: usize,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConversationAnswer<'a> {
    /// The model's output.
    pub(super) entries: &'a [Entry],
    /// The id by which a later request may refer to the answer.
    pub(super) id: Option<&'a str>,
    /// Whether the answer failed or is missing. The next request may repeat the last one.
    pub(super) is_failed: bool,
}

#[derive(Clone, Debug)]
struct TrackedConversation {
    source: String,
    /// Hashes of the history up to the last request and up to the last answer.
    last_request_hash: Hash,
    tip_hash: Hash,
    /// Requests without an answer yet.
    open_requests: usize,
    /// Whether tool calls have no result yet.
    has_open_calls: bool,
    /// Hashes of the instructions emitted so far.
    instruction_hashes: HashSet<Hash>,
}

impl TrackedConversation {
    /// Whether the conversation waits for an answer or a tool result.
    fn is_busy(&self) -> bool {
        self.open_requests > 0 || self.has_open_calls
    }
}

impl ConversationTracker {
    /// Finds the conversation of a request, or begins one, and adds the request's entries to it.
    pub(super) fn match_request(
        &mut self,
        messages: &[Entry],
        follows: Option<&str>,
        system: &[Entry],
    ) -> ConversationMatch {
        let root = self.root_hash(follows);
        let parts = comparable_parts(messages);
        let chain = prefix_hashes(root, &parts);
        let found = self.find_conversation(&parts, &chain, system);
        let tip = *chain.last().unwrap_or(&root);
        // The hash of the empty history identifies no conversation.
        for point in chain.iter().skip(1) {
            self.by_prefix.insert(*point, found.conversation);
        }
        self.move_tip(found.conversation, tip);
        self.by_last_request.insert(tip, found.conversation);
        self.update_conversation(found.conversation, |conversation| {
            conversation.last_request_hash = tip;
            conversation.open_requests += 1;
            conversation.has_open_calls = false;
        });
        found
    }

    /// Adds the answer to a request.
    pub(super) fn record_answer(
        &mut self,
        index: ConversationIndex,
        request_hash: Hash,
        answer: ConversationAnswer<'_>,
    ) {
        let ConversationAnswer { entries, id, is_failed } = answer;
        let chain = prefix_hashes(request_hash, &comparable_parts(entries));
        let tip = *chain.last().unwrap_or(&request_hash);
        self.update_conversation(index, |conversation| {
            conversation.open_requests = conversation.open_requests.saturating_sub(1);
            if conversation.last_request_hash == request_hash {
                let has_call = entries.iter().any(|entry| entry.kind == EntryKind::ToolCall);
                conversation.has_open_calls = has_call && !is_failed;
            }
        });
        if self.conversations[index].last_request_hash == request_hash && !is_failed {
            self.move_tip(index, tip);
        }
        for point in chain.iter().skip(1) {
            self.by_prefix.insert(*point, index);
        }
        if let Some(id) = id {
            self.response_hashes.insert(id.to_owned(), tip);
        }
    }

    /// The source of a conversation.
    pub(super) fn source(&self, index: ConversationIndex) -> &str {
        &self.conversations[index].source
    }

    /// The hash of a conversation up to its last request.
    pub(super) fn last_request_hash(&self, index: ConversationIndex) -> Hash {
        self.conversations[index].last_request_hash
    }

    /// Adds an instruction and returns whether it is new to the conversation.
    pub(super) fn add_instruction(&mut self, index: ConversationIndex, entry: &Entry) -> bool {
        self.conversations[index].instruction_hashes.insert(blake3::hash(entry.content.as_bytes()))
    }

    /// Changes a conversation and updates the counts of waiting ones.
    fn update_conversation(
        &mut self,
        index: ConversationIndex,
        change: impl FnOnce(&mut TrackedConversation),
    ) {
        let conversation = &mut self.conversations[index];
        let is_first = conversation.source == PRIMARY_SOURCE;
        let before = usize::from(conversation.is_busy());
        change(conversation);
        let after = usize::from(conversation.is_busy());
        self.busy_count = self.busy_count - before + after;
        if is_first {
            self.busy_in_primary = self.busy_in_primary - before + after;
        }
    }

    /// Whether another conversation in the same source waits. This one's entries would come between its prompt and its
    /// answer.
    fn would_interleave(&self, index: ConversationIndex) -> bool {
        let conversation = &self.conversations[index];
        let own = usize::from(conversation.is_busy());
        conversation.source == PRIMARY_SOURCE && self.busy_in_primary > own
    }

    fn root_hash(&self, follows: Option<&str>) -> Hash {
        let empty = blake3::hash(b"");
        let Some(id) = follows else { return empty };
        self.response_hashes.get(id).copied().unwrap_or_else(|| blake3::hash(id.as_bytes()))
    }

    fn move_tip(&mut self, index: ConversationIndex, tip: Hash) {
        let before = std::mem::replace(&mut self.conversations[index].tip_hash, tip);
        if self.by_tip.get(&before) == Some(&index) {
            self.by_tip.remove(&before);
        }
        self.by_tip.insert(tip, index);
    }

    fn find_conversation(
        &mut self,
        parts: &[ComparedPart],
        chain: &[Hash],
        system: &[Entry],
    ) -> ConversationMatch {
        let entries = |at: usize| if at == 0 { 0 } else { parts[at - 1].end };
        let was_answered = |at: usize| at == 0 || parts[..at].iter().any(|part| part.is_answer);
        let is_free = |at: usize, index: ConversationIndex| {
            let is_same = was_answered(at) || self.has_same_instructions(index, system);
            is_same && self.conversations[index].open_requests == 0
        };
        let all = || (0..chain.len()).rev();
        let tip = all().find_map(|at| Some((at, *self.by_tip.get(&chain[at])?)));
        let tip = tip.filter(|(at, index)| is_free(*at, *index));
        // A client may send an answer back changed, for example trimmed or without its tool calls.
        let answers = count_answer_runs(parts);
        let echo = all().find_map(|at| {
            let index = *self.by_last_request.get(&chain[at])?;
            let echo = answers[at];
            let goes_on =
                echo > 0 && at + echo < parts.len() && self.conversations[index].open_requests == 0;
            let is_last = self.conversations[index].last_request_hash == chain[at];
            (goes_on && is_last).then_some((at + echo, index))
        });
        let is_deeper = |(at, _): &(usize, ConversationIndex)| tip.is_none_or(|(tip, _)| *at > tip);
        if let Some((at, index)) = echo.filter(is_deeper).or(tip) {
            if self.would_interleave(index) {
                return ConversationMatch {
                    known_entries: entries(at),
                    fork_of: Some(index),
                    ..self.begin_subagent()
                };
            }
            return ConversationMatch {
                conversation: index,
                known_entries: entries(at),
                fork_of: None,
            };
        }
        let deepest = all().find_map(|at| Some((at, *self.by_prefix.get(&chain[at])?)));
        let Some((at, index)) = deepest else { return self.begin_conversation() };
        if at > 0 && was_answered(at) {
            return ConversationMatch {
                known_entries: entries(at),
                fork_of: Some(index),
                ..self.begin_subagent()
            };
        }
        self.begin_conversation()
    }

    fn has_same_instructions(&self, index: ConversationIndex, system: &[Entry]) -> bool {
        let known = &self.conversations[index].instruction_hashes;
        system.iter().all(|entry| known.contains(&blake3::hash(entry.content.as_bytes())))
    }

    /// Begins a conversation: in the primary source if no other one is waiting, else as a subagent.
    fn begin_conversation(&mut self) -> ConversationMatch {
        if self.busy_count > 0 {
            return self.begin_subagent();
        }
        self.add_conversation(PRIMARY_SOURCE.to_owned())
    }

    fn begin_subagent(&mut self) -> ConversationMatch {
        self.subagent_count += 1;
        self.add_conversation(format!("subagent:{}", self.subagent_count))
    }

    fn add_conversation(&mut self, source: String) -> ConversationMatch {
        let start = blake3::hash(b"");
        let system = HashSet::new();
        let conversation = TrackedConversation {
            source,
            last_request_hash: start,
            tip_hash: start,
            open_requests: 0,
            has_open_calls: false,
            instruction_hashes: system,
        };
        self.conversations.push(conversation);
        ConversationMatch {
            conversation: self.conversations.len() - 1,
            known_entries: 0,
            fork_of: None,
        }
    }
}

/// For each part, and for the end, the length of the run of answers that starts there.
fn count_answer_runs(parts: &[ComparedPart]) -> Vec<usize> {
    let mut counts = vec![0; parts.len() + 1];
    for (at, part) in parts.iter().enumerate().rev() {
        counts[at] = if part.is_answer { counts[at + 1] + 1 } else { 0 };
    }
    counts
}

/// Entries that are hashed as one.
pub(super) struct ComparedPart {
    hash: Hash,
    /// Index of the next entry.
    end: usize,
    pub(super) is_answer: bool,
}

/// Splits entries into parts to compare. Consecutive texts of the model form one part, because some clients split them
/// differently when they send them back.
pub(super) fn comparable_parts(entries: &[Entry]) -> Vec<ComparedPart> {
    let mut parts: Vec<ComparedPart> = Vec::new();
    // Hash of the current run of model texts.
    let mut text: Option<Hasher> = None;
    for (at, entry) in entries.iter().enumerate() {
        let is_answer = entry.role == Role::Assistant;
        let is_text = is_answer && entry.kind == EntryKind::Text;
        if entry.kind == EntryKind::Thinking || (is_text && entry.content.trim().is_empty()) {
            continue;
        }
        if is_text {
            if text.is_some() {
                parts.pop();
            }
            let hasher = text.get_or_insert_default();
            for word in entry.content.split_whitespace() {
                hasher.update(word.as_bytes());
            }
            parts.push(ComparedPart { hash: hasher.finalize(), end: at + 1, is_answer });
        } else {
            text = None;
            parts.push(ComparedPart { hash: hash_entry(entry), end: at + 1, is_answer });
        }
    }
    parts
}

fn hash_entry(entry: &Entry) -> Hash {
    let mut hasher = Hasher::new();
    let mut add = |part: &str| {
        hasher.update(part.as_bytes()).update(b"\0");
    };
    add(entry.role.as_str());
    add(&entry.kind.to_string());
    match entry.kind {
        // Clients reformat arguments, and give ids to calls that had none.
        EntryKind::ToolCall => {
            add(entry.tool_name.as_deref().unwrap_or_default());
            add(&JsonStyle::COMPACT.print(&entry.tool_input.as_ref().map(sort_keys)));
        }
        EntryKind::Other => add(&JsonStyle::COMPACT.print(&entry.metadata)),
        _ => add(&entry.content),
    }
    hasher.finalize()
}

/// The hash of every prefix of `parts`, starting with `root` for the empty one.
pub(super) fn prefix_hashes(root: Hash, parts: &[ComparedPart]) -> Vec<Hash> {
    let mut points = vec![root];
    for part in parts {
        let mut hasher = Hasher::new();
        hasher.update(points[points.len() - 1].as_bytes()).update(part.hash.as_bytes());
        points.push(hasher.finalize());
    }
    points
}
