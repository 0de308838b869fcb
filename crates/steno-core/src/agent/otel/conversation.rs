//! Follows a conversation through requests that each repeat all of it.

use std::collections::{HashMap, HashSet};

use super::super::fields::{plain, unpacked};
use super::super::output::Output;
use super::message::{self, Message};
use super::span::Span;
use crate::agent::entries;
use crate::entry::{Entry, Kind, PRIMARY, Role};
use crate::timestamp::Timestamp;

/// Reads spans in the order in which they began.
pub(super) struct Conversation<'a, 'b> {
    output: &'a mut Output<'b>,
    /// The span above each, and the agent that it invokes.
    above: HashMap<String, (String, Option<String>)>,
    /// What each source was told and said so far.
    told: HashMap<String, Vec<blake3::Hash>>,
    calls: HashSet<String>,
    results: HashSet<String>,
}

impl<'a, 'b> Conversation<'a, 'b> {
    /// A conversation within `spans`.
    pub(super) fn new(spans: &[Span], output: &'a mut Output<'b>) -> Self {
        let above = spans.iter().map(|span| {
            let is_agent = span.operation() == "invoke_agent";
            let names = ["gen_ai.agent.id", "gen_ai.agent.name"];
            let agent = names.iter().find_map(|name| span.text(name));
            let agent = is_agent.then(|| agent.unwrap_or_else(|| span.id.clone()));
            (span.id.clone(), (span.parent.clone(), agent))
        });
        let (told, calls, results) = (HashMap::new(), HashSet::new(), HashSet::new());
        Self { output, above: above.collect(), told, calls, results }
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
            self.entries(message::entries(message, &self.results), &source, &id, span.start);
        }
        let id = span.text("gen_ai.response.id").unwrap_or_else(|| span.id.clone());
        let mut entries: Vec<_> =
            answers.iter().flat_map(|answer| message::entries(answer, &self.results)).collect();
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
        if !self.calls.contains(&id) {
            let mut call = Entry::new(Role::Assistant, Kind::ToolCall, "");
            call.tool_input = span.attributes.get("gen_ai.tool.call.arguments").map(unpacked);
            entries.push(call);
        }
        let result = span.attributes.get("gen_ai.tool.call.result");
        if (result.is_some() || span.error.is_some()) && !self.results.contains(&id) {
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
            match entry.kind {
                Kind::ToolCall => self.calls.extend(entry.tool_call_id.clone()),
                Kind::ToolResult => self.results.extend(entry.tool_call_id.clone()),
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
        let mut id = &span.id;
        for _ in 0..=self.above.len() {
            let Some((parent, agent)) = self.above.get(id) else { break };
            agents.extend(agent);
            id = parent;
        }
        match agents.as_slice() {
            [] | [_] => PRIMARY.to_owned(),
            [nearest, ..] => format!("subagent:{nearest}"),
        }
    }
}
