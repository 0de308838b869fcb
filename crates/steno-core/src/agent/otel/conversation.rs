//! Follows a conversation through requests that each repeat all of it.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;

use super::super::fields::{plain, unpacked};
use super::super::output::Output;
use super::message::{self, Message};
use super::outline::Outline;
use super::span::Span;
use crate::agent::entries;
use crate::entry::{Entry, Kind, PRIMARY, Role};
use crate::sums::Sum;
use crate::timestamp::Timestamp;

/// Reads spans in the order in which they began.
pub(super) struct Conversation<'a, 'b> {
    output: &'a mut Output<'b>,
    outline: &'a Outline<'a>,
    /// The span above each, and the agent that it invokes.
    above: HashMap<Sum, (Sum, Option<NonZeroU32>)>,
    /// What each source was told and said so far.
    told: HashMap<String, Vec<blake3::Hash>>,
    calls: HashSet<Sum>,
    results: HashSet<Sum>,
}

impl<'a, 'b> Conversation<'a, 'b> {
    /// The conversation of all spans in `outline`.
    pub(super) fn new(outline: &'a Outline<'a>, output: &'a mut Output<'b>) -> Self {
        // Only an agent below another one is a subagent.
        let has_several = outline.marks.iter().filter(|mark| mark.agent.is_some()).nth(1).is_some();
        let marks = outline.marks.iter().filter(|_| has_several);
        let above = marks.map(|mark| (mark.id, (mark.parent, mark.agent))).collect();
        let (told, calls, results) = (HashMap::new(), HashSet::new(), HashSet::new());
        Self { output, outline, above, told, calls, results }
    }

    /// Takes the next span.
    pub(super) fn span(&mut self, span: &Span) {
        match span.operation().as_str() {
            "execute_tool" => self.tool(span),
            "chat" | "generate_content" | "text_completion" => self.request(span),
            "" if span.model().is_some() => self.request(span),
            _ => self.notice(span),
        }
    }

    fn request(&mut self, span: &Span) {
        let source = self.source(span);
        let (input, answers) = message::of(span);
        let new = self.news(&source, &input);
        for (index, message) in input.iter().enumerate().skip(new) {
            let id = format!("{}.{index}", span.id);
            self.entries(self.new_entries(message), &source, &id, span.start);
        }
        let id = span.text("gen_ai.response.id").unwrap_or_else(|| span.id.clone());
        let mut entries: Vec<_> =
            answers.iter().flat_map(|answer| self.new_entries(answer)).collect();
        if entries.is_empty() {
            // The words were not recorded, but the model answered.
            let kind = if span.error.is_some() { Kind::Notice } else { Kind::Text };
            entries.push(Entry::new(Role::Assistant, kind, ""));
        }
        entries[0].usage = span.usage();
        entries.iter_mut().for_each(|entry| entry.model = span.model());
        self.entries(entries, &source, &id, span.end);
        self.error(span, &source);
        let told = self.told.entry(source).or_default();
        *told = input.iter().chain(&answers).map(Message::sum).collect();
    }

    /// Where in `input` that begins which was not told before.
    fn news(&self, source: &str, input: &[Message]) -> usize {
        let Some(told) = self.told.get(source) else { return 0 };
        let sums: Vec<_> = input.iter().map(Message::sum).collect();
        let same = sums.iter().zip(told).take_while(|(sum, told)| sum == told).count();
        if same == told.len() {
            return same;
        }
        // The conversation was shortened or its answer reworded: all up to the last known message
        // is old.
        let last = sums.iter().rposition(|sum| told.contains(sum));
        last.map_or(same, |last| last + 1)
    }

    fn tool(&mut self, span: &Span) {
        let source = self.source(span);
        let id = span.text("gen_ai.tool.call.id").unwrap_or_else(|| span.id.clone());
        let name = span.text("gen_ai.tool.name");
        let mut entries = Vec::new();
        if !self.calls.contains(&self.sum(&id)) {
            let mut call = Entry::new(Role::Assistant, Kind::ToolCall, "");
            call.tool_input = span.attributes.get("gen_ai.tool.call.arguments").map(unpacked);
            entries.push(call);
        }
        let result = span.attributes.get("gen_ai.tool.call.result");
        if (result.is_some() || span.error.is_some()) && !self.results.contains(&self.sum(&id)) {
            let content = result.map(plain).or_else(|| span.error.clone()).unwrap_or_default();
            let mut result = Entry::new(Role::Tool, Kind::ToolResult, content);
            if span.error.is_some() {
                result.metadata = Some(entries::failure());
            }
            entries.push(result);
        }
        for entry in &mut entries {
            entry.tool_name.clone_from(&name);
            entry.tool_call_id = Some(id.clone());
        }
        self.entries(entries, &source, &span.id, span.end);
    }

    /// Operations that say nothing, such as an agent being invoked.
    fn notice(&mut self, span: &Span) {
        let source = self.source(span);
        let mut entry = Entry::new(Role::System, Kind::Notice, span.operation());
        entry.metadata = Some(span.attributes.clone());
        self.entries(vec![entry], &source, &span.id, span.start);
        self.error(span, &source);
    }

    fn error(&mut self, span: &Span, source: &str) {
        if let Some(reason) = &span.error {
            let entry = Entry::new(Role::System, Kind::Error, reason.as_str());
            self.entries(vec![entry], source, &span.id, span.end);
        }
    }

    fn entries(&mut self, entries: Vec<Entry>, source: &str, id: &str, at: Option<Timestamp>) {
        for mut entry in entries {
            let call = entry.tool_call_id.as_deref().map(|id| self.sum(id));
            match entry.kind {
                Kind::ToolCall => self.calls.extend(call),
                Kind::ToolResult => self.results.extend(call),
                _ => {}
            }
            source.clone_into(&mut entry.source);
            entry.message_id = Some(id.to_owned());
            entry.created_at = at;
            self.output.entry(entry);
        }
    }

    /// An agent that another one invoked is a subagent. Spans may lie about what is above them: no
    /// more are climbed than there are.
    fn source(&self, span: &Span) -> String {
        let mut agents = Vec::new();
        let mut id = self.sum(&span.id);
        for _ in 0..=self.above.len() {
            let Some((parent, agent)) = self.above.get(&id) else { break };
            agents.extend(agent);
            // The nearest one is the speaker if there is another above it.
            if agents.len() > 1 {
                break;
            }
            id = *parent;
        }
        match agents.as_slice() {
            [nearest, _] => format!("subagent:{}", self.outline.name(*nearest)),
            _ => PRIMARY.to_owned(),
        }
    }

    /// The entries of a message, without results that are known.
    fn new_entries(&self, message: &Message) -> Vec<Entry> {
        let is_known = |entry: &Entry| {
            let id = entry.tool_call_id.as_deref().map(|id| self.sum(id));
            entry.kind == Kind::ToolResult && id.is_some_and(|id| self.results.contains(&id))
        };
        message.entries().filter(|entry| !is_known(entry)).collect()
    }

    fn sum(&self, id: &str) -> Sum {
        self.outline.sums.of(id)
    }
}
