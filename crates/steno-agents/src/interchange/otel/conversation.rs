//! Follows a conversation through requests that each repeat all of it.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use indexmap::IndexSet;

use super::message::{self, OtelMessage};
use super::outline::SpanOutline;
use super::span::OtelSpan;
use crate::decoding::entries;
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::{plain_text, unpack_json};
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role};
use steno_model::name_hash::{CompactNameSet, ShortNameHash};
use steno_model::timestamp::Timestamp;

/// Limit for walking up the parents of a span, because parent ids may form a cycle.
const MAX_ANCESTORS: usize = 256;

/// Decodes spans in order of their start.
pub(super) struct SpanConversation<'a, 'b> {
    output: &'a mut EntryEmitter<'b>,
    outline: &'a SpanOutline<'a>,
    /// Mark indices of all spans, sorted by span id. Empty if there are no subagents.
    by_id: Vec<u32>,
    /// Names of subagents, by mark index.
    agents: HashMap<u32, String>,
    /// Hashes of the messages of each source so far.
    known_messages: HashMap<String, Vec<blake3::Hash>>,
    calls: CompactNameSet,
    results: CompactNameSet,
    /// Models named by spans without output of the model, such as agent spans.
    pub(super) models: IndexSet<String>,
}

impl<'a, 'b> SpanConversation<'a, 'b> {
    /// The conversation of all spans in `outline`.
    pub(super) fn new(outline: &'a SpanOutline<'a>, output: &'a mut EntryEmitter<'b>) -> Self {
        let (mut by_id, agents, known_messages) = (Vec::new(), HashMap::new(), HashMap::new());
        let (calls, results) = (CompactNameSet::default(), CompactNameSet::default());
        // Only an agent below another agent is a subagent.
        let invokes = |index: &&u32| outline.marks.at(**index).invokes;
        if outline.spans_by_start.iter().filter(invokes).nth(1).is_some() {
            by_id.clone_from(&outline.spans_by_start);
            by_id.sort_by_key(|index| outline.marks.at(*index).id);
        }
        let models = IndexSet::new();
        Self { output, outline, by_id, agents, known_messages, calls, results, models }
    }

    /// Adds the next span.
    pub(super) fn add_span(&mut self, span: &OtelSpan) -> Result<(), FileError> {
        let source = self.span_source(span)?;
        match span.operation().as_str() {
            // Gemini CLI uses its own operation names.
            "execute_tool" | "tool_call" => self.add_tool(span, &source),
            "chat" | "generate_content" | "text_completion" | "llm_call" => {
                self.add_request(span, &source);
            }
            "" if span.model().is_some() => self.add_request(span, &source),
            _ => self.add_notice(span, &source),
        }
        Ok(())
    }

    fn add_request(&mut self, span: &OtelSpan, source: &str) {
        let (input, answers) = message::span_messages(span);
        let new = self.first_new_message(source, &input);
        for (index, message) in input.iter().enumerate().skip(new) {
            let id = format!("{}.{index}", span.id);
            self.emit_entries(self.new_entries(message), source, Some(&id), span.start);
        }
        let id = span.text("gen_ai.response.id").unwrap_or_else(|| span.id.clone());
        let mut entries: Vec<_> =
            answers.iter().flat_map(|answer| self.new_entries(answer)).collect();
        if entries.is_empty() {
            // The content was not recorded, but the model answered.
            let kind = if span.error.is_some() { EntryKind::Notice } else { EntryKind::Text };
            entries.push(Entry::new(Role::Assistant, kind, ""));
        }
        entries[0].usage = span.usage();
        entries.iter_mut().for_each(|entry| entry.model = span.model());
        self.emit_entries(entries, source, Some(&id), span.end);
        self.add_error(span, source);
        let known = self.known_messages.entry(source.to_owned()).or_default();
        *known = input.iter().chain(&answers).map(OtelMessage::hash).collect();
    }

    /// Index in `input` of the first new message.
    fn first_new_message(&self, source: &str, input: &[OtelMessage]) -> usize {
        let Some(known) = self.known_messages.get(source) else { return 0 };
        let hashes: Vec<_> = input.iter().map(OtelMessage::hash).collect();
        let same = hashes.iter().zip(known).take_while(|(hash, known)| hash == known).count();
        if same == known.len() {
            return same;
        }
        // The conversation was shortened or the answer changed: everything up to the last known message is old.
        let last = hashes.iter().rposition(|hash| known.contains(hash));
        last.map_or(same, |last| last + 1)
    }

    fn add_tool(&mut self, span: &OtelSpan, source: &str) {
        let names = ["gen_ai.tool.call.id", "gen_ai.tool.call_id"];
        let id = names.iter().find_map(|name| span.text(name)).unwrap_or_else(|| span.id.clone());
        let name = span.text("gen_ai.tool.name");
        let mut entries = Vec::new();
        if !self.calls.contains(&id) {
            let mut call = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
            call.tool_input = span.attributes.get("gen_ai.tool.call.arguments").map(unpack_json);
            entries.push(call);
        }
        let result = span.attributes.get("gen_ai.tool.call.result");
        if (result.is_some() || span.error.is_some()) && !self.results.contains(&id) {
            let content = result.map(plain_text).or_else(|| span.error.clone()).unwrap_or_default();
            let mut result = Entry::new(Role::Tool, EntryKind::ToolResult, content);
            if span.error.is_some() {
                result.metadata = Some(entries::failure_metadata());
            }
            entries.push(result);
        }
        for entry in &mut entries {
            entry.tool_name.clone_from(&name);
            entry.tool_call_id = Some(id.clone());
        }
        // A tool run is part of an answer, so it has no message id of its own.
        self.emit_entries(entries, source, None, span.end);
    }

    /// Adds an operation without content, such as an agent invocation.
    fn add_notice(&mut self, span: &OtelSpan, source: &str) {
        let mut entry = Entry::new(Role::System, EntryKind::Notice, span.operation());
        entry.metadata = Some(span.attributes.clone());
        self.models.extend(span.model());
        self.emit_entries(vec![entry], source, Some(&span.id), span.start);
        self.add_error(span, source);
    }

    fn add_error(&mut self, span: &OtelSpan, source: &str) {
        if let Some(reason) = &span.error {
            let entry = Entry::new(Role::System, EntryKind::Error, reason.as_str());
            self.emit_entries(vec![entry], source, Some(&span.id), span.end);
        }
    }

    /// Emits the entries of one message.
    fn emit_entries(
        &mut self,
        entries: Vec<Entry>,
        source: &str,
        message_id: Option<&str>,
        at: Option<Timestamp>,
    ) {
        for mut entry in entries {
            match (entry.kind, &entry.tool_call_id) {
                (EntryKind::ToolCall, Some(id)) => _ = self.calls.insert(id),
                (EntryKind::ToolResult, Some(id)) => _ = self.results.insert(id),
                _ => {}
            }
            source.clone_into(&mut entry.source);
            entry.message_id = message_id.map(str::to_owned);
            entry.created_at = at;
            self.output.emit_entry(entry);
        }
    }

    /// The source of a span. An agent invoked by another agent is a subagent.
    fn span_source(&mut self, span: &OtelSpan) -> Result<String, FileError> {
        let mut agents = Vec::new();
        let mut id = self.outline.id_hash(&span.id);
        for _ in 0..MAX_ANCESTORS {
            let Some(index) = self.find_mark(id) else { break };
            let mark = self.outline.marks.at(index);
            agents.extend(mark.invokes.then_some(index));
            // With a second agent above it, the nearest agent is a subagent.
            if let [nearest, _] = agents.as_slice() {
                return Ok(format!("subagent:{}", self.agent_name(*nearest)?));
            }
            id = mark.parent;
        }
        Ok(PRIMARY_SOURCE.to_owned())
    }

    /// The mark of a span. If several spans share an id, the last one started wins.
    fn find_mark(&self, id: ShortNameHash) -> Option<u32> {
        let id_of = |index: &u32| self.outline.marks.at(*index).id;
        let after = self.by_id.partition_point(|index| id_of(index) <= id);
        self.by_id[..after].last().copied().filter(|index| id_of(index) == id)
    }

    /// The name of the agent that the span of a mark invokes.
    fn agent_name(&mut self, index: u32) -> Result<&str, FileError> {
        Ok(match self.agents.entry(index) {
            Slot::Occupied(known) => known.into_mut(),
            Slot::Vacant(free) => {
                let span = self.outline.read_single_span(self.outline.marks.at(index))?;
                free.insert(span.invoked_agent().unwrap_or_default())
            }
        })
    }

    /// The entries of a message without known tool results.
    fn new_entries(&self, message: &OtelMessage) -> Vec<Entry> {
        let is_known = |entry: &Entry| {
            let id = entry.tool_call_id.as_ref();
            entry.kind == EntryKind::ToolResult && id.is_some_and(|id| self.results.contains(id))
        };
        message.part_entries().filter(|entry| !is_known(entry)).collect()
    }
}
