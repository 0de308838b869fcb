//! `history.jsonl`: the prompts of all sessions. They are in the sessions too, so here they are
//! notices and do not count.

use serde::Deserialize;

use super::AGENT;
use super::loose::Plain;
use crate::agent::fields::from_millis;
use crate::agent::json_lines::JsonLines;
use crate::agent::output::Output;
use crate::entry::{Entry, Kind, Role};
use crate::format::{Emit, FormatError};
use crate::problem::{Problem, json_reason};
use crate::session::{Session, SessionId};
use crate::source::Source;

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
    timestamp: Option<serde_json::Number>,
}

/// Reads the history, one entry per line.
pub(super) fn read(source: &Source, emit: Emit<'_>) -> Result<Session, FormatError> {
    let mut output = Output::new(AGENT, NAME, emit);
    for line in JsonLines::of(source)? {
        let told = line.and_then(|line| {
            let prompt = serde_json::from_slice(&line.bytes).map(|prompt| entry(&prompt));
            prompt.map_err(|error| Problem::at(source.path(), line.number, json_reason(&error)))
        });
        match told {
            Ok(entry) => output.entry(entry),
            Err(problem) => output.problem(problem),
        }
    }
    let mut session = Session::new(SessionId::for_native(AGENT, NAME), AGENT);
    session.native_id = Some(NAME.to_owned());
    Ok(session)
}

fn entry(prompt: &Prompt<'_>) -> Entry {
    let text = prompt.display.text().unwrap_or_default();
    let mut entry = Entry::new(Role::User, Kind::Notice, text);
    let milliseconds = prompt.timestamp.as_ref().and_then(serde_json::Number::as_i64);
    entry.created_at = milliseconds.and_then(from_millis);
    for (name, value) in [("project", &prompt.project), ("sessionId", &prompt.session_id)] {
        if let Some(value) = value.text() {
            entry.extra.insert(name.to_owned(), value.into());
        }
    }
    entry
}
