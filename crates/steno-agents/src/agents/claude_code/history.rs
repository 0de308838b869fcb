//! Reads `history.jsonl`, the prompts of all sessions.
//!
//! Read as a whole, the file repeats prompts of other sessions, so its entries are notices and do not count as
//! prompts. For a session with a deleted file, these lines are all that remains, and are read as its prompts.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::AGENT_NAME;
use super::lenient_value::{LenientScalar, LenientValue};
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::timestamp_from_millis;
use crate::decoding::json_lines::JsonLines;
use crate::reader::{FormatError, ItemSink};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::problem::{Problem, json_error_reason};
use steno_model::session::{Session, SessionId};
use steno_vault::SessionFile;

const HISTORY_NATIVE_ID: &str = "history";

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClaudeHistoryLine<'a> {
    #[serde(borrow)]
    display: LenientScalar<'a>,
    #[serde(borrow)]
    project: LenientScalar<'a>,
    #[serde(borrow)]
    session_id: LenientScalar<'a>,
    #[serde(borrow)]
    pasted_contents: LenientValue<'a, BTreeMap<String, LenientValue<'a, ClaudePastedText<'a>>>>,
    timestamp: Option<serde_json::Number>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaudePastedText<'a> {
    #[serde(borrow, rename = "type")]
    kind: LenientScalar<'a>,
    #[serde(borrow)]
    content: LenientScalar<'a>,
}

/// Reads the whole history, or the lines of the session `native_id`. Each line is one entry.
pub(super) fn read_history(
    source: &SessionFile,
    native_id: Option<&str>,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let name = native_id.unwrap_or(HISTORY_NATIVE_ID);
    let mut output = EntryEmitter::new(AGENT_NAME, name, emit);
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, name), AGENT_NAME);
    session.native_id = Some(name.to_owned());
    for line in JsonLines::open(source)? {
        let entry = line.and_then(|line| {
            match serde_json::from_slice::<ClaudeHistoryLine<'_>>(&line.bytes) {
                Ok(prompt) if native_id.is_some() => {
                    session.project =
                        session.project.take().or_else(|| prompt.project.owned_text());
                    Ok(prompt.to_entry(true))
                }
                Ok(prompt) => Ok(prompt.to_entry(false)),
                Err(error) => {
                    Err(Problem::at_line(source.path(), line.number, json_error_reason(&error)))
                }
            }
        });
        match entry {
            Ok(entry) => output.emit_entry(entry),
            Err(problem) => output.emit_problem(problem),
        }
    }
    if native_id.is_some() {
        session.extra.insert("told_by".to_owned(), source.name().into());
    }
    Ok(session)
}

impl ClaudeHistoryLine<'_> {
    fn to_entry(&self, is_alone: bool) -> Entry {
        let text = self.full_text();
        let kind = if is_alone && !is_command(&text) { EntryKind::Text } else { EntryKind::Notice };
        let mut entry = Entry::new(Role::User, kind, text);
        let milliseconds = self.timestamp.as_ref().and_then(serde_json::Number::as_i64);
        entry.created_at = milliseconds.and_then(timestamp_from_millis);
        for (name, value) in [("project", &self.project), ("sessionId", &self.session_id)] {
            if let Some(value) = value.text() {
                entry.extra.insert(name.to_owned(), value.into());
            }
        }
        entry
    }

    /// The typed text, with each placeholder of a pasted text replaced by that text.
    fn full_text(&self) -> String {
        let mut text = self.display.text().unwrap_or_default().to_owned();
        for (id, pasted) in self.pasted_contents.object().into_iter().flatten() {
            let pasted = pasted.object().filter(|pasted| pasted.kind.text() == Some("text"));
            let Some(content) = pasted.and_then(|pasted| pasted.content.text()) else { continue };
            let start = text.find(&format!("[Pasted text #{id}"));
            match start.and_then(|start| Some(start..start + text[start..].find(']')? + 1)) {
                Some(mark) => text.replace_range(mark, content),
                None => text = format!("{text}\n{content}"),
            }
        }
        text
    }
}

/// Whether a text is a slash command or a shell command. A path such as `/etc/hosts` is neither.
fn is_command(text: &str) -> bool {
    let name = text.split_whitespace().next().unwrap_or_default();
    let is_slash = name.strip_prefix('/').is_some_and(|name| !name.contains(['/', '.']));
    is_slash || text.starts_with('!') || name.is_empty()
}
