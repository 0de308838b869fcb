//! Finds where a session left the one that it was forked from.

use steno_model::json::Value;
use steno_model::{Entry, EntryKind, Session, Transcript};
use steno_store::view::turns::is_prompt;

use crate::addresses::session_address;
use crate::heading::session_title;
use crate::library::{OpenedSession, SessionLibrary};
use crate::render::ForkPoint;

/// Where a session left its parent; `None` without a parent in the store. The first position is 0 if the sessions have
/// no entries in common, as when an agent starts another one.
pub(crate) fn find_fork(library: &SessionLibrary, opened: &OpenedSession) -> Option<ForkPoint> {
    let session = &opened.transcript.session;
    let named = session.parent.as_deref()?;
    let listing = library.session_listing().ok()?;
    let is_parent = |other: &&Session| {
        other.id != session.id
            && (other.native_id.as_deref() == Some(named) || other.id.as_str() == named)
    };
    // A session may continue one of another agent, but agents may also give their sessions equal ids.
    let parents = || listing.sessions.iter().map(|one| &one.session).filter(is_parent);
    let parent =
        parents().find(|other| other.agent == session.agent).or_else(|| parents().next())?;
    let other = library.open_session(&parent.agent, parent.id.as_str()).ok()?;
    let place = count_common(&other.transcript.entries, &opened.transcript.entries);
    Some(ForkPoint {
        place,
        call: (place == 0).then(|| find_call_of(&other.transcript.entries, opened)).flatten(),
        address: session_address(&parent.agent, &parent.id),
        title: session_title(parent),
    })
}

/// The number of the call in the parent's entries that started a session.
fn find_call_of(parent: &[Entry], opened: &OpenedSession) -> Option<usize> {
    let Transcript { session, entries, .. } = &opened.transcript;
    let names = [session.native_id.as_deref(), Some(session.id.as_str())];
    let names: Vec<&str> = names.into_iter().flatten().collect();
    let prompt = entries.iter().find(|entry| is_prompt(entry)).map(|entry| entry.content.trim());
    find_call(parent, &names, prompt)
}

/// The number of the call that started a session: one that names it, whose result does, or that has its first prompt.
pub(crate) fn find_call(parent: &[Entry], names: &[&str], prompt: Option<&str>) -> Option<usize> {
    let is_call = |entry: &Entry| entry.kind == EntryKind::ToolCall;
    let has_prompt = |entry: &Entry| {
        let input = entry.tool_input.as_ref().and_then(|input| input.get("prompt")?.as_str());
        is_call(entry) && input.is_some() && input.map(str::trim) == prompt
    };
    let named = || {
        let entry =
            parent.iter().find(|entry| is_tool_entry(entry) && names_session(entry, names))?;
        let id = entry.tool_call_id.as_deref()?;
        parent.iter().position(|call| is_call(call) && call.tool_call_id.as_deref() == Some(id))
    };
    named().or_else(|| parent.iter().position(has_prompt))
}

fn is_tool_entry(entry: &Entry) -> bool {
    matches!(entry.kind, EntryKind::ToolCall | EntryKind::ToolResult)
}

/// Whether an entry has one of these ids: in its text, or as a value that its agent wrote beside it.
fn names_session(entry: &Entry, names: &[&str]) -> bool {
    let values = entry.extra.values().chain(entry.metadata.iter().flat_map(|all| all.values()));
    names.iter().any(|name| entry.content.contains(name))
        || values.chain(&entry.tool_input).any(|value| has_text(value, names))
}

/// Whether a value is one of these texts, or contains it as a value.
fn has_text(value: &Value, texts: &[&str]) -> bool {
    match value {
        Value::String(text) => texts.contains(&text.as_str()),
        Value::Array(values) => values.iter().any(|value| has_text(value, texts)),
        Value::Object(object) => object.values().any(|value| has_text(value, texts)),
        _ => false,
    }
}

/// How many entries two sessions begin with in common.
fn count_common(a: &[Entry], b: &[Entry]) -> usize {
    let is_same = |(a, b): &(&Entry, &Entry)| {
        (a.role == b.role && a.kind == b.kind)
            && (a.content == b.content && a.tool_input == b.tool_input)
    };
    a.iter().zip(b).take_while(is_same).count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steno_model::Role;

    use super::*;

    #[test]
    fn the_call_that_started_a_session_is_found_by_its_id_or_its_prompt() {
        let tool = |kind: EntryKind, id: &str, text: &str| {
            let mut entry = Entry::new(Role::Assistant, kind, text);
            entry.tool_call_id = Some(id.to_owned());
            entry
        };
        let mut asking = tool(EntryKind::ToolCall, "t2", "");
        asking.tool_input = Some(json!({"prompt": "Look around "}));
        let mut hidden = tool(EntryKind::ToolResult, "t3", "done");
        hidden.extra.insert("task".to_owned(), json!({"ids": ["ses_hidden"]}));
        let parent = [
            tool(EntryKind::ToolCall, "t1", ""),
            asking,
            tool(EntryKind::ToolCall, "t3", ""),
            tool(EntryKind::ToolResult, "t1", "task_id: ses_child"),
            hidden,
        ];
        assert_eq!(find_call(&parent, &["ses_child"], None), Some(0));
        assert_eq!(find_call(&parent, &["ses_hidden"], None), Some(2));
        assert_eq!(find_call(&parent, &["ses_other"], Some("Look around")), Some(1));
        assert_eq!(find_call(&parent, &["ses_other"], None), None);
    }

    #[test]
    fn a_fork_begins_after_the_common_entries() {
        let entry = |text: &str| Entry::new(Role::User, EntryKind::Text, text);
        let a = [entry("one"), entry("two"), entry("three")];
        let b = [entry("one"), entry("two"), entry("other"), entry("three")];
        assert_eq!(count_common(&a, &b), 2);
        assert_eq!(count_common(&a, &[]), 0);
    }
}
