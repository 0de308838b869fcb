//! Which conversation a request extends.
//!
//! A request repeats all that was said. What stands in it is compared part by part: a point is the sum over all parts up to
//! it, and the deepest known point tells the conversation. Instructions are not compared, because agents change them
//! as they go; nor are thoughts, which are seldom sent back.

use std::collections::{HashMap, HashSet};

use blake3::{Hash, Hasher};

use crate::entry::{Entry, Kind, PRIMARY, Role};
use crate::json::{Style, sorted};

/// A place in the list of conversations.
pub(super) type Place = usize;

/// Where a request belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The conversation.
    pub(super) place: Place,
    /// How many entries of the request it has already.
    pub(super) known: usize,
    /// The conversation that it left, if it is a fork.
    pub(super) fork_of: Option<Place>,
}

/// All conversations so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Conversations {
    list: Vec<Conversation>,
    /// Who has said everything up to a point.
    points: HashMap<Hash, Place>,
    /// Who has said nothing beyond a point.
    tips: HashMap<Hash, Place>,
    /// Whose last request ended at a point.
    asked: HashMap<Hash, Place>,
    /// Where responses that a server keeps have ended.
    responses: HashMap<String, Hash>,
    /// Sources that were given out beside the first.
    others: usize,
    /// How many conversations wait for an answer or for the result of a tool.
    busy: usize,
    /// How many of those are in the first source.
    busy_in_first: usize,
}

/// What came back to a request of a conversation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer<'a> {
    /// What the model said.
    pub(super) entries: &'a [Entry],
    /// The id by which a later request may refer to it.
    pub(super) id: Option<&'a str>,
    /// Whether it broke off, or there is none: the next request may repeat the last one.
    pub(super) is_failed: bool,
}

#[derive(Clone, Debug)]
struct Conversation {
    source: String,
    /// Where its last request ended, and its last answer.
    asked: Hash,
    tip: Hash,
    /// Requests that have no answer yet.
    open: usize,
    /// Calls of tools that have no result yet.
    calls: bool,
    /// Instructions that were told.
    system: HashSet<Hash>,
}

impl Conversation {
    /// Whether it waits for an answer or for the result of a tool.
    fn is_busy(&self) -> bool {
        self.open > 0 || self.calls
    }
}

impl Conversations {
    /// Finds the conversation of a request, or begins one; its entries up to here are known from now on.
    pub(super) fn place(
        &mut self,
        said: &[Entry],
        follows: Option<&str>,
        system: &[Entry],
    ) -> Found {
        let root = self.root(follows);
        let parts = parts(said);
        let chain = chain(root, &parts);
        let found = self.find(&parts, &chain, system);
        let tip = *chain.last().unwrap_or(&root);
        // Where all begin says nothing.
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

    /// Takes the answer to the last request of a conversation.
    pub(super) fn answered(&mut self, place: Place, asked: Hash, answer: Answer<'_>) {
        let Answer { entries, id, is_failed } = answer;
        let chain = chain(asked, &parts(entries));
        let tip = *chain.last().unwrap_or(&asked);
        self.update(place, |conversation| {
            conversation.open = conversation.open.saturating_sub(1);
            if conversation.asked == asked {
                let has_call = entries.iter().any(|entry| entry.kind == Kind::ToolCall);
                conversation.calls = has_call && !is_failed;
            }
        });
        if self.list[place].asked == asked && !is_failed {
            self.move_tip(place, tip);
        }
        for point in chain.iter().skip(1) {
            self.points.insert(*point, place);
        }
        if let Some(id) = id {
            self.responses.insert(id.to_owned(), tip);
        }
    }

    /// The source of a conversation.
    pub(super) fn source(&self, place: Place) -> &str {
        &self.list[place].source
    }

    /// Where the last request of a conversation ended.
    pub(super) fn asked(&self, place: Place) -> Hash {
        self.list[place].asked
    }

    /// Whether an instruction is new to a conversation; from now on it is not.
    pub(super) fn instructs(&mut self, place: Place, entry: &Entry) -> bool {
        self.list[place].system.insert(blake3::hash(entry.content.as_bytes()))
    }

    /// Changes a conversation, and counts those that wait.
    fn update(&mut self, place: Place, change: impl FnOnce(&mut Conversation)) {
        let conversation = &mut self.list[place];
        let is_first = conversation.source == PRIMARY;
        let before = usize::from(conversation.is_busy());
        change(conversation);
        let after = usize::from(conversation.is_busy());
        self.busy = self.busy - before + after;
        if is_first {
            self.busy_in_first = self.busy_in_first - before + after;
        }
    }

    /// Whether another conversation of the same source waits: what this one says would stand between its prompt and
    /// its answer.
    fn would_interleave(&self, place: Place) -> bool {
        let conversation = &self.list[place];
        let own = usize::from(conversation.is_busy());
        conversation.source == PRIMARY && self.busy_in_first > own
    }

    fn root(&self, follows: Option<&str>) -> Hash {
        let empty = blake3::hash(b"");
        let Some(id) = follows else { return empty };
        self.responses.get(id).copied().unwrap_or_else(|| blake3::hash(id.as_bytes()))
    }

    fn move_tip(&mut self, place: Place, tip: Hash) {
        let before = std::mem::replace(&mut self.list[place].tip, tip);
        if self.tips.get(&before) == Some(&place) {
            self.tips.remove(&before);
        }
        self.tips.insert(tip, place);
    }

    fn find(&mut self, parts: &[Part], chain: &[Hash], system: &[Entry]) -> Found {
        let entries = |at: usize| if at == 0 { 0 } else { parts[at - 1].end };
        let was_answered = |at: usize| at == 0 || parts[..at].iter().any(|part| part.is_answer);
        let is_free = |at: usize, place: Place| {
            let is_same = was_answered(at) || self.is_same_opening(place, system);
            is_same && self.list[place].open == 0
        };
        let all = || (0..chain.len()).rev();
        let tip = all().find_map(|at| Some((at, *self.tips.get(&chain[at])?)));
        let tip = tip.filter(|(at, place)| is_free(*at, *place));
        // An answer may come back in other words, such as trimmed or without its calls.
        let answers = answers_from(parts);
        let echo = all().find_map(|at| {
            let place = *self.asked.get(&chain[at])?;
            let echo = answers[at];
            let goes_on = echo > 0 && at + echo < parts.len() && self.list[place].open == 0;
            let is_last = self.list[place].asked == chain[at];
            (goes_on && is_last).then_some((at + echo, place))
        });
        let is_deeper = |(at, _): &(usize, Place)| tip.is_none_or(|(tip, _)| *at > tip);
        if let Some((at, place)) = echo.filter(is_deeper).or(tip) {
            if self.would_interleave(place) {
                return Found { known: entries(at), fork_of: Some(place), ..self.begin_beside() };
            }
            return Found { place, known: entries(at), fork_of: None };
        }
        let deepest = all().find_map(|at| Some((at, *self.points.get(&chain[at])?)));
        let Some((at, place)) = deepest else { return self.begin() };
        if at > 0 && was_answered(at) {
            return Found { known: entries(at), fork_of: Some(place), ..self.begin_beside() };
        }
        self.begin()
    }

    fn is_same_opening(&self, place: Place, system: &[Entry]) -> bool {
        let told = &self.list[place].system;
        system.iter().all(|entry| told.contains(&blake3::hash(entry.content.as_bytes())))
    }

    /// A conversation of its own. While no other is under way it stands in the first source.
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

/// For each part, and for the end, how many parts from there on are answers.
fn answers_from(parts: &[Part]) -> Vec<usize> {
    let mut counts = vec![0; parts.len() + 1];
    for (at, part) in parts.iter().enumerate().rev() {
        counts[at] = if part.is_answer { counts[at + 1] + 1 } else { 0 };
    }
    counts
}

/// Entries that are compared as one.
pub(super) struct Part {
    sum: Hash,
    /// The entry after it.
    end: usize,
    pub(super) is_answer: bool,
}

/// What is compared. Texts of the model that follow each other are one: some clients send them back in other pieces.
pub(super) fn parts(entries: &[Entry]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    // The hash of the model's texts that follow each other.
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
        // Clients print arguments anew, and give calls ids that had none.
        Kind::ToolCall => {
            add(entry.tool_name.as_deref().unwrap_or_default());
            add(&Style::COMPACT.print(&entry.tool_input.as_ref().map(sorted)));
        }
        Kind::Other => add(&Style::COMPACT.print(&entry.metadata)),
        _ => add(&entry.content),
    }
    hasher.finalize()
}

/// The points that parts reach, the first of them where they begin.
pub(super) fn chain(root: Hash, parts: &[Part]) -> Vec<Hash> {
    let mut points = vec![root];
    for part in parts {
        let mut hasher = Hasher::new();
        hasher.update(points[points.len() - 1].as_bytes()).update(part.sum.as_bytes());
        points.push(hasher.finalize());
    }
    points
}
