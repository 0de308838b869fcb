//! Reads `history.jsonl`, the prompts of all sessions.
//!
//! Read as a whole, the file repeats prompts of other sessions, so its entries are notices and do not count as
//! prompts. For a session with a deleted file, these lines are all that remains, and are read as its prompts.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::AGENT;
use super::loose::{Loose, Plain};
use crate::agent::fields::from_millis;
use crate::agent::json_lines::JsonLines;
use crate::agent::output::Output;
use crate::entry::{Entry, Kind, Role};
use crate::format::{Emit, FormatError};
use crate::problem::{Problem, json_reason};
use crate::session::{Session, SessionId};
use steno_vault::Source;

const NAME: &str = "history";

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Prompt<'a> {
    #[serde(borrow)]
    display: Plain<'a>,
    #[serde(borrow)]
    project: Plain<'a>,
    #[serde(borrow)]
    session_id: Plain<'a>,
    #[serde(borrow)]
    pasted_contents: Loose<'a, BTreeMap<String, Loose<'a, Pasted<'a>>>>,
    timestamp: Option<serde_json::Number>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pasted<'a> {
    #[serde(borrow, rename = "type")]
    kind: Plain<'a>,
    #[serde(borrow)]
    content: Plain<'a>,
}

/// Reads the whole history, or the lines of the session `native_id`. Each line is one entry.
pub(super) fn read(
    source: &Source,
    native_id: Option<&str>,
    emit: Emit<'_>,
) -> Result<Session, FormatError> {
    let name = native_id.unwrap_or(NAME);
    let mut output = Output::new(AGENT, name, emit);
    let mut session = Session::new(SessionId::for_native(AGENT, name), AGENT);
    session.native_id = Some(name.to_owned());
    for line in JsonLines::of(source)? {
        let entry = line.and_then(|line| match serde_json::from_slice::<Prompt<'_>>(&line.bytes) {
            Ok(prompt) if native_id.is_some() => {
                session.project = session.project.take().or_else(|| prompt.project.owned());
                Ok(prompt.entry(true))
            }
            Ok(prompt) => Ok(prompt.entry(false)),
            Err(error) => Err(Problem::at(source.path(), line.number, json_reason(&error))),
        });
        match entry {
            Ok(entry) => output.entry(entry),
            Err(problem) => output.problem(problem),
        }
    }
    if native_id.is_some() {
        session.extra.insert("told_by".to_owned(), source.name().into());
    }
    Ok(session)
}

impl Prompt<'_> {
    fn entry(&self, is_alone: bool) -> Entry {
        let text = self.text();
        let kind = if is_alone && !is_command(&text) { Kind::Text } else { Kind::Notice };
        let mut entry = Entry::new(Role::User, kind, text);
        let milliseconds = self.timestamp.as_ref().and_then(serde_json::Number::as_i64);
        entry.created_at = milliseconds.and_then(from_millis);
        for (name, value) in [("project", &self.project), ("sessionId", &self.session_id)] {
            if let Some(value) = value.text() {
                entry.extra.insert(name.to_owned(), value.into());
            }
        }
        entry
    }

    /// The typed text, with each placeholder of a pasted text replaced by that text.
    fn text(&self) -> String {
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
