//! The part of a session that another agent can continue: prompts, answers, and tool calls with their results.
//!
//! Thinking, notices, subagents' entries and errors are left out and counted. Reading a written session gives an equal
//! conversation, so that a copy can be checked.

use std::collections::HashMap;

use super::image_segments::{is_image_reference, separate_image_references};
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role};
use steno_model::json::{Object, Value};
use steno_model::prompt::continued_session_id;
use steno_model::timestamp::Timestamp;

/// The result of a call that has none.
pub const MISSING_RESULT: &str = "[no result was recorded]";

/// A text before a prompt that the agent would otherwise take for a command.
pub(crate) const PROMPT_MARK: &str = "The user wrote:";

/// The longest tool name that all model APIs accept.
const MAX_TOOL_NAME: usize = 64;

/// The name of a tool that the record does not name.
const UNKNOWN_TOOL: &str = "unknown_tool";

/// What an agent can continue of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContinuedConversation {
    /// Prompts, answers and calls, in order.
    pub items: Vec<ContinuedItem>,
    /// Where the agent compacted its context.
    pub compactions: Vec<CompactionPoint>,
    /// What is not in the items.
    pub left_out: LeftOutEntries,
}

/// One prompt, answer or call.
#[derive(Clone, Debug, PartialEq)]
pub struct ContinuedItem {
    /// What it is.
    pub kind: ContinuedItemKind,
    /// When it was recorded.
    pub created_at: Option<Timestamp>,
    /// The model that produced it.
    pub model: Option<String>,
}

/// What an item is.
#[derive(Clone, Debug, PartialEq)]
pub enum ContinuedItemKind {
    /// Text of the user.
    Prompt(String),
    /// Text of the model.
    Answer(String),
    /// A tool call with its result.
    Call(ContinuedCall),
}

/// A tool call with its result.
#[derive(Clone, Debug, PartialEq)]
pub struct ContinuedCall {
    /// The tool, in characters that all model APIs accept.
    pub name: String,
    /// The arguments. Other values than objects are in the field `input`.
    pub input: Object,
    /// The result, or [`MISSING_RESULT`].
    pub result: String,
    /// Whether the call failed.
    pub is_error: bool,
    /// Whether the result was recorded.
    pub has_result: bool,
}

/// A compaction of the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionPoint {
    /// The number of items before it.
    pub position: usize,
    /// The agent's summary of them; empty if the record has none.
    pub summary: String,
}

/// Numbers of entries that are not continued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOutEntries {
    /// Thoughts.
    pub thoughts: usize,
    /// Entries of subagents. Their results are in the calls that started them.
    pub subagent_entries: usize,
    /// Notices, errors and unknown records.
    pub notices: usize,
    /// Results without a call, or further results of a call.
    pub results: usize,
}

/// What becomes of texts with the role `user` that no person wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeHandling {
    /// They are left out: the other agent adds its own.
    LeftOut,
    /// They are prompts, except Steno's own. A written session has no others.
    AsPrompts,
}

/// Numbers of what a conversation has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConversationCounts {
    /// Prompts.
    pub prompts: usize,
    /// Answers.
    pub answers: usize,
    /// Tool calls.
    pub calls: usize,
    /// Calls without a recorded result.
    pub open_calls: usize,
}

impl ContinuedConversation {
    /// The conversation in the entries of a session.
    pub fn from_entries(entries: &[Entry], notices: NoticeHandling) -> Self {
        let mut builder = ConversationReader {
            conversation: Self::default(),
            waiting: HashMap::new(),
            notices,
            has_notice: false,
        };
        entries.iter().for_each(|entry| builder.add_entry(entry));
        builder.conversation
    }

    /// How much there is.
    pub fn counts(&self) -> ConversationCounts {
        let mut counts = ConversationCounts::default();
        for item in &self.items {
            match &item.kind {
                ContinuedItemKind::Prompt(_) => counts.prompts += 1,
                ContinuedItemKind::Answer(_) => counts.answers += 1,
                ContinuedItemKind::Call(call) => {
                    counts.calls += 1;
                    counts.open_calls += usize::from(!call.has_result);
                }
            }
        }
        counts
    }

    /// Describes the first prompt, answer, call or result that another conversation has differently.
    pub fn first_difference(&self, other: &Self) -> Option<String> {
        let (own, others) = (comparable_items(self), comparable_items(other));
        let differing = own.iter().zip(&others).position(|(own, other)| own != other);
        let at = match differing {
            Some(at) => at,
            None if own.len() == others.len() => return None,
            None => own.len().min(others.len()),
        };
        let describe = |items: &[ComparableItem<'_>]| match items.get(at) {
            Some(item) => item.describe(),
            None => "nothing".to_owned(),
        };
        Some(format!("item {}: {} became {}", at + 1, describe(&own), describe(&others)))
    }
}

/// An item without ids and times. Prompts in succession are one, because some formats write each part of a prompt as a
/// record of its own.
#[derive(PartialEq)]
enum ComparableItem<'a> {
    Prompt(String),
    Answer(&'a str),
    Call(&'a str, &'a Object, &'a str),
}

impl ComparableItem<'_> {
    fn describe(&self) -> String {
        match self {
            ComparableItem::Prompt(text) => format!("a prompt of {} bytes", text.len()),
            ComparableItem::Answer(text) => format!("an answer of {} bytes", text.len()),
            ComparableItem::Call(name, _, result) => {
                format!("a call of {name} with a result of {} bytes", result.len())
            }
        }
    }
}

fn comparable_items(conversation: &ContinuedConversation) -> Vec<ComparableItem<'_>> {
    let mut items: Vec<ComparableItem<'_>> = Vec::new();
    for item in &conversation.items {
        match (&item.kind, items.last_mut()) {
            (ContinuedItemKind::Prompt(text), Some(ComparableItem::Prompt(before))) => {
                before.push('\n');
                before.push_str(text);
            }
            (ContinuedItemKind::Prompt(text), _) => {
                items.push(ComparableItem::Prompt(text.clone()));
            }
            (ContinuedItemKind::Answer(text), _) => items.push(ComparableItem::Answer(text)),
            (ContinuedItemKind::Call(call), _) => {
                items.push(ComparableItem::Call(&call.name, &call.input, &call.result));
            }
        }
    }
    items
}

/// Collects a conversation from entries.
struct ConversationReader {
    conversation: ContinuedConversation,
    /// The items of calls without a result, by call id.
    waiting: HashMap<String, Vec<usize>>,
    notices: NoticeHandling,
    /// Whether the first text of the user was read, which is the notice in a written session.
    has_notice: bool,
}

impl ConversationReader {
    fn add_entry(&mut self, entry: &Entry) {
        if entry.source != PRIMARY_SOURCE {
            self.conversation.left_out.subagent_entries += 1;
            return;
        }
        match (entry.kind, &entry.role) {
            (EntryKind::Text, Role::User) => self.add_prompt(entry),
            (EntryKind::Text, Role::Assistant) => self.add_answer(entry, &entry.content),
            (EntryKind::ToolCall, _) => self.add_call(entry),
            (EntryKind::ToolResult, _) => self.add_result(entry),
            (EntryKind::Error, _) if entry.tool_call_id.is_some() => self.add_result(entry),
            (EntryKind::Thinking, _) => self.conversation.left_out.thoughts += 1,
            (EntryKind::Compaction, _) => {
                let position = self.conversation.items.len();
                let summary = entry.content.clone();
                self.conversation.compactions.push(CompactionPoint { position, summary });
            }
            (EntryKind::Notice, Role::User) => self.add_notice(entry),
            _ => self.conversation.left_out.notices += 1,
        }
    }

    fn add_item(&mut self, entry: &Entry, kind: ContinuedItemKind) {
        let (created_at, model) = (entry.created_at, entry.model.clone());
        self.conversation.items.push(ContinuedItem { kind, created_at, model });
    }

    fn add_prompt(&mut self, entry: &Entry) {
        let text = separate_image_references(&entry.content);
        if self.notices == NoticeHandling::AsPrompts {
            let is_first = !std::mem::replace(&mut self.has_notice, true);
            if text == PROMPT_MARK || (is_first && continued_session_id(&text).is_some()) {
                return;
            }
        }
        if !text.trim().is_empty() {
            self.add_item(entry, ContinuedItemKind::Prompt(text));
        }
    }

    fn add_answer(&mut self, entry: &Entry, text: &str) {
        if !text.trim().is_empty() {
            self.add_item(entry, ContinuedItemKind::Answer(text.to_owned()));
        }
    }

    /// Adds an image of a prompt, or the summary after a compaction. Other notices are handled as asked for.
    fn add_notice(&mut self, entry: &Entry) {
        let text = separate_image_references(&entry.content);
        if let Some(image) = text.lines().last().filter(|line| is_image_reference(line)) {
            return self.add_item(entry, ContinuedItemKind::Prompt(image.to_owned()));
        }
        let position = self.conversation.items.len();
        if self.notices == NoticeHandling::AsPrompts {
            self.add_prompt(entry);
        } else if let Some(compaction) =
            self.conversation.compactions.last_mut().filter(|last| last.position == position)
        {
            compaction.summary.push_str(&text);
        } else {
            self.conversation.left_out.notices += 1;
        }
    }

    fn add_call(&mut self, entry: &Entry) {
        if let Some(text) = entry.text_beside_call() {
            self.add_answer(entry, text);
        }
        let call = ContinuedCall {
            name: accepted_tool_name(entry.tool_name.as_deref().unwrap_or_default()),
            input: input_object(entry),
            result: MISSING_RESULT.to_owned(),
            is_error: false,
            has_result: false,
        };
        let id = entry.tool_call_id.clone().unwrap_or_default();
        self.waiting.entry(id).or_default().push(self.conversation.items.len());
        self.add_item(entry, ContinuedItemKind::Call(call));
    }

    fn add_result(&mut self, entry: &Entry) {
        let id = entry.tool_call_id.as_deref().unwrap_or_default();
        let position = match self.waiting.get_mut(id) {
            Some(positions) if !positions.is_empty() => positions.remove(0),
            _ => {
                self.conversation.left_out.results += 1;
                return;
            }
        };
        if let ContinuedItemKind::Call(call) = &mut self.conversation.items[position].kind {
            call.result = separate_image_references(&entry.content);
            call.is_error = entry.is_tool_error();
            call.has_result = true;
        }
    }
}

/// The arguments of a call as an object.
fn input_object(entry: &Entry) -> Object {
    let wrap = |value: Value| Object::from_iter([("input".to_owned(), value)]);
    match &entry.tool_input {
        Some(Value::Object(input)) => input.clone(),
        Some(value) => wrap(value.clone()),
        None if entry.content.is_empty() => Object::new(),
        None => wrap(Value::String(entry.content.clone())),
    }
}

/// The name with `_` for each character that some model API rejects.
fn accepted_tool_name(name: &str) -> String {
    let accepted = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
    match name {
        "" => UNKNOWN_TOOL.to_owned(),
        name => name.chars().take(MAX_TOOL_NAME).map(accepted).collect(),
    }
}
