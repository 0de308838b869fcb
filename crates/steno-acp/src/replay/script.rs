//! The script of a replay: a session as turns of an agent.

use std::collections::HashSet;

use serde_json::{Value, json};
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role};
use steno_model::json::Object;
use steno_model::prompt::without_thread_blocks;
use steno_model::{Timestamp, Transcript, Usage};

use super::steps::StepBuilder;

/// What an agent does in a session.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayScript {
    /// The model to report when the session opens.
    pub(super) model: Option<String>,
    pub(super) turns: Vec<ScriptTurn>,
}

/// What an agent does after one prompt.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScriptTurn {
    pub(super) prompt: String,
    pub(super) steps: Vec<ScriptStep>,
    /// The response to the prompt.
    pub(super) end: TurnEnd,
}

/// One action of an agent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScriptStep {
    pub(super) at: Option<Timestamp>,
    pub(super) action: ScriptAction,
    /// A tool decision that the step depends on.
    pub(super) condition: Option<ToolCondition>,
}

/// Whether a tool must have been permitted or denied.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolCondition {
    pub(super) tool: String,
    pub(super) is_denied: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ScriptAction {
    /// Send an update.
    Update(Value),
    /// Request permission.
    RequestPermission(Object),
}

/// The response to a prompt.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TurnEnd {
    Result(Value),
    Error(Value),
}

impl ReplayScript {
    /// Builds the script of a session. Entries before the first prompt are left out, unless there is no prompt.
    pub fn from_transcript(transcript: &Transcript) -> Self {
        let entries = &transcript.entries;
        let mut begins: Vec<usize> =
            (0..entries.len()).filter(|at| is_prompt(&entries[*at])).collect();
        if begins.is_empty() {
            begins.push(0);
        }
        let model = entries.iter().find_map(|entry| entry.model.clone());
        let answered = entries.iter().filter(|entry| is_result(entry));
        let answered = answered.filter_map(|entry| entry.tool_call_id.clone()).collect();
        let mut steps = StepBuilder::new(model.clone(), answered);
        let ends = begins.iter().skip(1).copied().chain([entries.len()]);
        let turns = begins.iter().zip(ends).map(|(begin, end)| {
            let entries = &entries[*begin..end];
            build_turn(entries, &mut steps)
        });
        let mut script = Self { model, turns: turns.collect() };
        script.add_context_usage(transcript);
        script
    }

    /// The updates with which an agent sends the whole session again: each prompt, and what followed it.
    pub(crate) fn history_updates(&self) -> Vec<Value> {
        let mut updates = Vec::new();
        for turn in &self.turns {
            if !turn.prompt.is_empty() {
                let content = json!({ "type": "text", "text": turn.prompt });
                updates.push(json!({ "sessionUpdate": "user_message_chunk", "content": content }));
            }
            let steps = turn.steps.iter().filter(|step| {
                !step.condition.as_ref().is_some_and(|condition| condition.is_denied)
            });
            updates.extend(steps.filter_map(|step| match &step.action {
                ScriptAction::Update(update) => Some(update.clone()),
                ScriptAction::RequestPermission(_) => None,
            }));
        }
        updates
    }

    /// Adds the recorded context usage and cost to the last turn.
    fn add_context_usage(&mut self, transcript: &Transcript) {
        let about = transcript.session.extra.get("acp").and_then(|about| about.get("context"));
        let Some(Value::Object(context)) = about else { return };
        let mut update = json!({ "sessionUpdate": "usage_update" });
        if let (Some(update), Some(turn)) = (update.as_object_mut(), self.turns.last_mut()) {
            update.extend(context.clone());
            let at = turn.steps.last().and_then(|step| step.at);
            let action = ScriptAction::Update(Value::Object(update.clone()));
            turn.steps.push(ScriptStep { at, action, condition: None });
        }
    }
}

fn is_prompt(entry: &Entry) -> bool {
    entry.role == Role::User && entry.kind == EntryKind::Text && entry.source == PRIMARY_SOURCE
}

fn is_result(entry: &Entry) -> bool {
    entry.kind == EntryKind::ToolResult || entry.is_tool_error()
}

fn build_turn(entries: &[Entry], steps: &mut StepBuilder) -> ScriptTurn {
    let (prompt, rest) = match entries.split_first() {
        Some((first, rest)) if is_prompt(first) => (first.content.clone(), rest),
        _ => (String::new(), entries),
    };
    let end = turn_end(rest);
    rest.iter().for_each(|entry| steps.add_entry(entry));
    ScriptTurn { prompt, steps: steps.take_steps(), end }
}

fn turn_end(entries: &[Entry]) -> TurnEnd {
    if let Some(error) = entries.last().filter(|entry| is_failure(entry)) {
        let metadata = error.metadata.clone().unwrap_or_default();
        let code = metadata.get("code").cloned().unwrap_or_else(|| json!(-32603));
        let message =
            metadata.get("message").cloned().unwrap_or_else(|| error.content.clone().into());
        let mut response = json!({ "code": code, "message": message });
        if let (Some(response), Some(data)) = (response.as_object_mut(), metadata.get("data")) {
            response.insert("data".to_owned(), data.clone());
        }
        return TurnEnd::Error(response);
    }
    let last_field =
        |name| entries.iter().rev().find_map(|it| it.metadata.as_ref()?.get(name).cloned());
    let reason = last_field("stop_reason").unwrap_or_else(|| "end_turn".into());
    let mut result = Object::from_iter([("stopReason".to_owned(), reason)]);
    let mut usage = Usage::default();
    entries.iter().filter_map(|entry| entry.usage.as_ref()).for_each(|one| usage.add(one));
    if !usage.is_empty() {
        result.insert("usage".to_owned(), protocol_usage(&usage));
    }
    result.extend(last_field("turn_meta").map(|meta| ("_meta".to_owned(), meta)));
    TurnEnd::Result(result.into())
}

/// Whether an entry is the error of a failed prompt.
pub(super) fn is_failure(entry: &Entry) -> bool {
    entry.kind == EntryKind::Error && entry.tool_call_id.is_none()
}

/// Token counts with the field names of the protocol.
fn protocol_usage(usage: &Usage) -> Value {
    let text_tokens = usage.output.saturating_sub(usage.reasoning);
    json!({
        "totalTokens": usage.prompt_tokens() + usage.output,
        "inputTokens": usage.input,
        "outputTokens": text_tokens,
        "cachedReadTokens": usage.cache_read,
        "cachedWriteTokens": usage.prompt_tokens() - usage.input - usage.cache_read,
        "thoughtTokens": usage.reasoning,
    })
}

/// Whether two prompts are equal without their thread blocks.
pub(super) fn is_same_prompt(recorded: &str, given: &str) -> bool {
    without_thread_blocks(recorded).trim() == without_thread_blocks(given).trim()
}

/// The message ids that were used, so that no two messages share one.
pub(super) type UsedMessageIds = HashSet<(Role, EntryKind, String)>;
