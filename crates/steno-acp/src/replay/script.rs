//! A session as the turns that an agent plays.

use std::collections::HashSet;

use serde_json::{Value, json};
use steno_core::entry::{Entry, Kind, PRIMARY, Role};
use steno_core::json::Object;
use steno_core::prompt::without_thread_blocks;
use steno_core::{Timestamp, Transcript, Usage};

use super::steps::Steps;

/// What an agent does in a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The model that is named when the session begins.
    pub(super) model: Option<String>,
    pub(super) turns: Vec<Turn>,
}

/// What an agent does when it is given a prompt.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Turn {
    pub(super) prompt: String,
    pub(super) steps: Vec<Step>,
    /// What the prompt is answered with.
    pub(super) end: End,
}

/// One thing that an agent does.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) at: Option<Timestamp>,
    pub(super) act: Act,
    /// Where it depends on whether a tool is permitted this time.
    pub(super) condition: Option<ToolCondition>,
}

/// What must have been decided about a tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolCondition {
    pub(super) tool: String,
    pub(super) is_denied: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    /// Tells something.
    Update(Value),
    /// Asks for permission.
    Ask(Object),
}

/// How a prompt is answered.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum End {
    Result(Value),
    Error(Value),
}

impl Script {
    /// The script of a session. What was said before the first prompt is left out, unless there is none.
    pub fn of(transcript: &Transcript) -> Self {
        let entries = &transcript.entries;
        let mut begins: Vec<usize> =
            (0..entries.len()).filter(|at| is_prompt(&entries[*at])).collect();
        if begins.is_empty() {
            begins.push(0);
        }
        let model = entries.iter().find_map(|entry| entry.model.clone());
        let answered = entries.iter().filter(|entry| is_result(entry));
        let answered = answered.filter_map(|entry| entry.tool_call_id.clone()).collect();
        let mut steps = Steps::new(model.clone(), answered);
        let ends = begins.iter().skip(1).copied().chain([entries.len()]);
        let turns = begins.iter().zip(ends).map(|(begin, end)| {
            let entries = &entries[*begin..end];
            turn(entries, &mut steps)
        });
        let mut script = Self { model, turns: turns.collect() };
        script.tell_context(transcript);
        script
    }

    /// Has the last turn tell how full the context was, and what all of it cost.
    fn tell_context(&mut self, transcript: &Transcript) {
        let about = transcript.session.extra.get("acp").and_then(|about| about.get("context"));
        let Some(Value::Object(context)) = about else { return };
        let mut update = json!({ "sessionUpdate": "usage_update" });
        if let (Some(update), Some(turn)) = (update.as_object_mut(), self.turns.last_mut()) {
            update.extend(context.clone());
            let at = turn.steps.last().and_then(|step| step.at);
            let act = Act::Update(Value::Object(update.clone()));
            turn.steps.push(Step { at, act, condition: None });
        }
    }
}

fn is_prompt(entry: &Entry) -> bool {
    entry.role == Role::User && entry.kind == Kind::Text && entry.source == PRIMARY
}

fn is_result(entry: &Entry) -> bool {
    entry.kind == Kind::ToolResult || entry.is_tool_error()
}

fn turn(entries: &[Entry], steps: &mut Steps) -> Turn {
    let (prompt, rest) = match entries.split_first() {
        Some((first, rest)) if is_prompt(first) => (first.content.clone(), rest),
        _ => (String::new(), entries),
    };
    let end = end(rest);
    rest.iter().for_each(|entry| steps.add(entry));
    Turn { prompt, steps: steps.take(), end }
}

fn end(entries: &[Entry]) -> End {
    if let Some(error) = entries.last().filter(|entry| is_failure(entry)) {
        let told = error.metadata.clone().unwrap_or_default();
        let code = told.get("code").cloned().unwrap_or_else(|| json!(-32603));
        let message = told.get("message").cloned().unwrap_or_else(|| error.content.clone().into());
        let mut answer = json!({ "code": code, "message": message });
        if let (Some(answer), Some(data)) = (answer.as_object_mut(), told.get("data")) {
            answer.insert("data".to_owned(), data.clone());
        }
        return End::Error(answer);
    }
    let told = |name| entries.iter().rev().find_map(|it| it.metadata.as_ref()?.get(name).cloned());
    let reason = told("stop_reason").unwrap_or_else(|| "end_turn".into());
    let mut result = Object::from_iter([("stopReason".to_owned(), reason)]);
    let mut usage = Usage::default();
    entries.iter().filter_map(|entry| entry.usage.as_ref()).for_each(|one| usage.add(one));
    if !usage.is_empty() {
        result.insert("usage".to_owned(), tokens(&usage));
    }
    result.extend(told("turn_meta").map(|meta| ("_meta".to_owned(), meta)));
    End::Result(result.into())
}

/// Whether a prompt failed.
pub(super) fn is_failure(entry: &Entry) -> bool {
    entry.kind == Kind::Error && entry.tool_call_id.is_none()
}

/// Tokens in the words of the protocol.
fn tokens(usage: &Usage) -> Value {
    let said = usage.output.saturating_sub(usage.reasoning);
    json!({
        "totalTokens": usage.prompt() + usage.output,
        "inputTokens": usage.input,
        "outputTokens": said,
        "cachedReadTokens": usage.cache_read,
        "cachedWriteTokens": usage.prompt() - usage.input - usage.cache_read,
        "thoughtTokens": usage.reasoning,
    })
}

/// Whether a prompt asks what was asked then; what tells of a thread is left out.
pub(super) fn is_same(recorded: &str, given: &str) -> bool {
    without_thread_blocks(recorded).trim() == without_thread_blocks(given).trim()
}

/// The names under which messages were told already, so that each is told as one of its own.
pub(super) type Told = HashSet<(Role, Kind, String)>;
