//! Finds the conversation that a request continues.
//!
//! A request repeats the whole history. The tracker splits it into comparable parts and hashes every prefix of them;
//! the longest known prefix identifies the conversation. Instructions are not compared, because agents change them
//! during a conversation. Nor are thoughts, because clients seldom send them back.

use std::collections::{HashMap, HashSet};

use blake3::{Hash, Hasher};

use crate::entry::{Entry, Kind, PRIMARY, Role};
use crate::json::{Style, sorted};

/// An index into the list of conversations.
pub(super) type Place = usize;

/// The conversation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The conversation's index.
    pub(super) place: Place,
    /// How many entries of the request the conversation already has.
    pub(super) known: usize,
    /// The conversation that this one forked from.
    pub(super) fork_of: Option<Place>,
}

/// All conversations so far, found by prefix hash.
#[derive(Clone, Debug, Default)]
pub(super) struct Conversations {
    list: Vec<Conversation>,
    /// Conversations by the hash of any prefix of their history.
    points: HashMap<Hash, Place>,
    /// Conversations by the hash of their whole history.
    tips: HashMap<Hash, Place>,
    /// Conversations by the hash of their last request.
    asked: HashMap<Hash, Place>,
    /// Hashes of the histories that end with a response, by response id.
    responses: HashMap<String, Hash>,
    /// Number of subagent sources so far.
    others: usize,
    /// How many conversations wait for an answer or a tool result.
    busy: usize,
    /// How many of those are in the primary source.
    busy_in_first: usize,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer<'a> {
    /// The model's output.
    pub(super) entries: &'a [Entry],
    /// The id by which a later request may refer to the answer.
    pub(super) id: Option<&'a str>,
    /// Whether the answer failed or is missing. The next request may repeat the last one.
    pub(super) is_failed: bool,
}

#[derive(Clone, Debug)]
struct Conversation {
    source: String,
    /// Hashes of the history up to the last request and up to the last answer.
    asked: Hash,
    tip: Hash,
    /// Requests without an answer yet.
    open: usize,
    /// Whether tool calls have no result yet.
    calls: bool,
    /// Hashes of the instructions emitted so far.
    system: HashSet<Hash>,
}

impl Conversation {
    /// Whether the conversation waits for an answer or a tool result.
    fn is_busy(&self) -> bool {
        self.open > 0 || self.calls
    }
}

impl Conversations {
    /// Finds the conversation of a request, or begins one, and adds the request's entries to it.
    pub(super) fn place(
        &mut self,
        messages: &[Entry],
        follows: Option<&str>,
        system: &[Entry],
    ) -> Found {
        let root = self.root(follows);
        let parts = parts(messages);
        let chain = chain(root, &parts);
        let found = self.find(&parts, &chain, system);
        let tip = *chain.last().unwrap_or(&root);
        // The hash of the empty history identifies no conversation.
        for point in chain.iter().skip(1) {
            self.points.insert(*point, found.place);
        }
        self.move_tip(found.place, tip);
        self.asked.insert(tip, found.place);
        self.update(found.place, |conversation| {
            conversation.asked = tip;
            conversation.open += 1;
            conversation.calls = false;
        });
        found
    }

    /// Adds the answer to a request.
    pub(super) fn answered(&mut self, index: Place, request_hash: Hash, answer: Answer<'_>) {
        let Answer { entries, id, is_failed } = answer;
        let chain = chain(request_hash, &parts(entries));
        let tip = *chain.last().unwrap_or(&request_hash);
        self.update(index, |conversation| {
            conversation.open = conversation.open.saturating_sub(1);
            if conversation.asked == request_hash {
                let has_call = entries.iter().any(|entry| entry.kind == Kind::ToolCall);
                conversation.calls = has_call && !is_failed;
            }
        });
        if self.list[index].asked == request_hash && !is_failed {
            self.move_tip(index, tip);
        }
        for point in chain.iter().skip(1) {
            self.points.insert(*point, index);
        }
        if let Some(id) = id {
            self.responses.insert(id.to_owned(), tip);
        }
    }

    /// The source of a conversation.
    pub(super) fn source(&self, index: Place) -> &str {
        &self.list[index].source
    }

    /// The hash of a conversation up to its last request.
    pub(super) fn asked(&self, index: Place) -> Hash {
        self.list[index].asked
    }

    /// Adds an instruction and returns whether it is new to the conversation.
    pub(super) fn instructs(&mut self, index: Place, entry: &Entry) -> bool {
        self.list[index].system.insert(blake3::hash(entry.content.as_bytes()))
    }

    /// Changes a conversation and updates the counts of waiting ones.
    fn update(&mut self, index: Place, change: impl FnOnce(&mut Conversation)) {
        let conversation = &mut self.list[index];
        let is_first = conversation.source == PRIMARY;
        let before = usize::from(conversation.is_busy());
        change(conversation);
        let after = usize::from(conversation.is_busy());
        self.busy = self.busy - before + after;
        if is_first {
            self.busy_in_first = self.busy_in_first - before + after;
        }
    }

    /// Whether another conversation in the same source waits. This one's entries would come between its prompt and its
    /// answer.
    fn would_interleave(&self, index: Place) -> bool {
        let conversation = &self.list[index];
        let own = usize::from(conversation.is_busy());
        conversation.source == PRIMARY && self.busy_in_first > own
    }

    fn root(&self, follows: Option<&str>) -> Hash {
        let empty = blake3::hash(b"");
        let Some(id) = follows else { return empty };
        self.responses.get(id).copied().unwrap_or_else(|| blake3::hash(id.as_bytes()))
    }

    fn move_tip(&mut self, index: Place, tip: Hash) {
        let before = std::mem::replace(&mut self.list[index].tip, tip);
        if self.tips.get(&before) == Some(&index) {
            self.tips.remove(&before);
        }
        self.tips.insert(tip, index);
    }

    fn find(&mut self, parts: &[Part], chain: &[Hash], system: &[Entry]) -> Found {
        let entries = |at: usize| if at == 0 { 0 } else { parts[at - 1].end };
        let was_answered = |at: usize| at == 0 || parts[..at].iter().any(|part| part.is_answer);
        let is_free = |at: usize, index: Place| {
            let is_same = was_answered(at) || self.is_same_opening(index, system);
            is_same && self.list[index].open == 0
        };
        let all = || (0..chain.len()).rev();
        let tip = all().find_map(|at| Some((at, *self.tips.get(&chain[at])?)));
        let tip = tip.filter(|(at, index)| is_free(*at, *index));
        // A client may send an answer back changed, for example trimmed or without its tool calls.
        let answers = answers_from(parts);
        let echo = all().find_map(|at| {
            let index = *self.asked.get(&chain[at])?;
            let echo = answers[at];
            let goes_on = echo > 0 && at + echo < parts.len() && self.list[index].open == 0;
            let is_last = self.list[index].asked == chain[at];
            (goes_on && is_last).then_some((at + echo, index))
        });
        let is_deeper = |(at, _): &(usize, Place)| tip.is_none_or(|(tip, _)| *at > tip);
        if let Some((at, index)) = echo.filter(is_deeper).or(tip) {
            if self.would_interleave(index) {
                return Found { known: entries(at), fork_of: Some(index), ..self.begin_beside() };
            }
            return Found { place: index, known: entries(at), fork_of: None };
        }
        let deepest = all().find_map(|at| Some((at, *self.points.get(&chain[at])?)));
        let Some((at, index)) = deepest else { return self.begin() };
        if at > 0 && was_answered(at) {
            return Found { known: entries(at), fork_of: Some(index), ..self.begin_beside() };
        }
        self.begin()
    }

    fn is_same_opening(&self, index: Place, system: &[Entry]) -> bool {
        let known = &self.list[index].system;
        system.iter().all(|entry| known.contains(&blake3::hash(entry.content.as_bytes())))
    }

    /// Begins a conversation: in the primary source if no other one is waiting, else as a subagent.
    fn begin(&mut self) -> Found {
        if self.busy > 0 {
            return self.begin_beside();
        }
        self.add(PRIMARY.to_owned())
    }

    fn begin_beside(&mut self) -> Found {
        self.others += 1;
        self.add(format!("subagent:{}", self.others))
    }

    fn add(&mut self, source: String) -> Found {
        let start = blake3::hash(b"");
        let system = HashSet::new();
        let conversation =
            Conversation { source, asked: start, tip: start, open: 0, calls: false, system };
        self.list.push(conversation);
        Found { place: self.list.len() - 1, known: 0, fork_of: None }
    }
}

/// For each part, and for the end, the length of the run of answers that starts there.
fn answers_from(parts: &[Part]) -> Vec<usize> {
    let mut counts = vec![0; parts.len() + 1];
    for (at, part) in parts.iter().enumerate().rev() {
        counts[at] = if part.is_answer { counts[at + 1] + 1 } else { 0 };
    }
    counts
}

/// Entries that are hashed as one.
pub(super) struct Part {
    sum: Hash,
    /// Index of the next entry.
    end: usize,
    pub(super) is_answer: bool,
}

/// Splits entries into parts to compare. Consecutive texts of the model form one part, because some clients split them
/// differently when they send them back.
pub(super) fn parts(entries: &[Entry]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    // Hash of the current run of model texts.
    let mut text: Option<Hasher> = None;
    for (at, entry) in entries.iter().enumerate() {
        let is_answer = entry.role == Role::Assistant;
        let is_text = is_answer && entry.kind == Kind::Text;
        if entry.kind == Kind::Thinking || (is_text && entry.content.trim().is_empty()) {
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
            parts.push(Part { sum: hasher.finalize(), end: at + 1, is_answer });
        } else {
            text = None;
            parts.push(Part { sum: sum(entry), end: at + 1, is_answer });
        }
    }
    parts
}

fn sum(entry: &Entry) -> Hash {
    let mut hasher = Hasher::new();
    let mut add = |part: &str| {
        hasher.update(part.as_bytes()).update(b"\0");
    };
    add(entry.role.as_str());
    add(&entry.kind.to_string());
    match entry.kind {
        // Clients reformat arguments, and give ids to calls that had none.
        Kind::ToolCall => {
            add(entry.tool_name.as_deref().unwrap_or_default());
            add(&Style::COMPACT.print(&entry.tool_input.as_ref().map(sorted)));
        }
        Kind::Other => add(&Style::COMPACT.print(&entry.metadata)),
        _ => add(&entry.content),
    }
    hasher.finalize()
}

/// The hash of every prefix of `parts`, starting with `root` for the empty one.
pub(super) fn chain(root: Hash, parts: &[Part]) -> Vec<Hash> {
    let mut points = vec![root];
    for part in parts {
        let mut hasher = Hasher::new();
        hasher.update(points[points.len() - 1].as_bytes()).update(part.sum.as_bytes());
        points.push(hasher.finalize());
    }
    points
}
