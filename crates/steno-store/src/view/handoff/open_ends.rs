//! What a session did not finish: an unanswered request, calls without results, failed calls, open tasks, questions.

use std::collections::HashMap;

use super::{EntryQuotes, MAX_QUOTE_CHARS, OpenEnd, sentences};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::Value;

/// The most open ends of one kind, the last ones.
const MAX_OF_KIND: usize = 5;

/// The most open tasks.
const MAX_TASKS: usize = 20;

/// Parts of the names of tools that write a list of tasks.
const TASK_TOOL_WORDS: [&str; 2] = ["todo", "update_plan"];

/// Fields with the text of a task.
const TASK_TEXT_FIELDS: [&str; 5] = ["content", "step", "description", "text", "title"];

/// Finds what was not finished.
pub(super) fn find_open_ends(quotes: &EntryQuotes<'_>) -> Vec<OpenEnd> {
    let mut ends = unanswered_request(quotes);
    ends.extend(open_calls(quotes));
    ends.extend(failed_calls(quotes));
    ends.extend(open_tasks(quotes));
    ends.extend(questions(quotes));
    ends
}

fn open_end(quotes: &EntryQuotes<'_>, kind: &'static str, number: usize, text: &str) -> OpenEnd {
    OpenEnd { kind, quote: quotes.quote_entry(number, text.trim(), MAX_QUOTE_CHARS) }
}

fn keep_last(mut ends: Vec<OpenEnd>) -> Vec<OpenEnd> {
    ends.drain(..ends.len().saturating_sub(MAX_OF_KIND));
    ends
}

/// The last request, if nothing followed it.
fn unanswered_request(quotes: &EntryQuotes<'_>) -> Vec<OpenEnd> {
    let Some((number, entry)) = quotes.texts(Role::User).next_back() else { return Vec::new() };
    let is_answer = |entry: &Entry| matches!(entry.kind, EntryKind::Text | EntryKind::ToolCall);
    let is_answered = quotes
        .primary()
        .any(|(at, entry)| at > number && entry.role == Role::Assistant && is_answer(entry));
    match is_answered {
        true => Vec::new(),
        false => vec![open_end(quotes, "unanswered request", number, &entry.content)],
    }
}

/// The results of a session by the id of their call.
fn results_by_call<'a>(quotes: &EntryQuotes<'a>) -> HashMap<&'a str, (usize, &'a Entry)> {
    let is_result = |entry: &Entry| matches!(entry.kind, EntryKind::ToolResult | EntryKind::Error);
    let results = quotes.primary().filter(|(_, entry)| is_result(entry));
    results
        .filter_map(|(number, entry)| Some((entry.tool_call_id.as_deref()?, (number, entry))))
        .collect()
}

fn tool_calls<'a>(quotes: &EntryQuotes<'a>) -> impl DoubleEndedIterator<Item = (usize, &'a Entry)> {
    quotes.primary().filter(|(_, entry)| entry.kind == EntryKind::ToolCall)
}

fn open_calls(quotes: &EntryQuotes<'_>) -> Vec<OpenEnd> {
    let results = results_by_call(quotes);
    let is_open =
        |entry: &Entry| entry.tool_call_id.as_deref().is_some_and(|id| !results.contains_key(id));
    let open = tool_calls(quotes).filter(|(_, entry)| is_open(entry));
    keep_last(
        open.map(|(number, entry)| {
            open_end(quotes, "call without result", number, &call_text(entry))
        })
        .collect(),
    )
}

/// Failed calls after the last request.
fn failed_calls(quotes: &EntryQuotes<'_>) -> Vec<OpenEnd> {
    let begin = quotes.texts(Role::User).next_back().map_or(0, |(number, _)| number);
    let results = results_by_call(quotes);
    let failed = tool_calls(quotes).filter_map(|(number, entry)| {
        let (_, result) = results.get(entry.tool_call_id.as_deref()?)?;
        (number > begin && result.is_tool_error()).then(|| {
            let text = format!("{}: {}", call_text(entry), result.content);
            open_end(quotes, "failed call", number, &text)
        })
    });
    keep_last(failed.collect())
}

fn call_text(entry: &Entry) -> String {
    let input = entry.tool_input.as_ref().map(Value::to_string).unwrap_or_default();
    format!("{} {input}", entry.tool_name.as_deref().unwrap_or_default())
}

/// The unfinished tasks of the last list of tasks.
fn open_tasks(quotes: &EntryQuotes<'_>) -> Vec<OpenEnd> {
    let is_list = |entry: &Entry| {
        let name = entry.tool_name.as_deref().unwrap_or_default().to_lowercase();
        TASK_TOOL_WORDS.iter().any(|word| name.contains(word))
    };
    let Some((number, list)) = tool_calls(quotes).rfind(|(_, entry)| is_list(entry)) else {
        return Vec::new();
    };
    let fields = list.tool_input.as_ref().and_then(Value::as_object);
    let tasks = fields.into_iter().flat_map(|fields| fields.values()).filter_map(Value::as_array);
    let text = |task: &Value| {
        let done = matches!(task.get("status")?.as_str()?, "completed" | "done" | "cancelled");
        let text = TASK_TEXT_FIELDS.iter().find_map(|field| task.get(field)?.as_str())?;
        (!done).then(|| text.to_owned())
    };
    let open = tasks.flatten().filter_map(text).take(MAX_TASKS);
    open.map(|text| open_end(quotes, "open task", number, &text)).collect()
}

/// The questions of the last answer, unless a request followed it.
fn questions(quotes: &EntryQuotes<'_>) -> Vec<OpenEnd> {
    let Some((number, entry)) = quotes.texts(Role::Assistant).next_back() else {
        return Vec::new();
    };
    if quotes.texts(Role::User).next_back().is_some_and(|(request, _)| request > number) {
        return Vec::new();
    }
    let asked = sentences(&entry.content).into_iter().filter(|sentence| sentence.ends_with('?'));
    keep_last(asked.map(|sentence| open_end(quotes, "question", number, sentence)).collect())
}
