//! Reads the output of `droid exec`: messages, tool calls, results and a completion, one per line.

use super::AGENT;
use crate::agent::entries;
use crate::agent::fields;
use crate::agent::head::Head;
use crate::agent::json_lines::each_object;
use crate::agent::record;
use crate::agent::telling::Telling;
use crate::agent::usage;
use crate::durable::FileError;
use crate::entry::{Entry, Kind, Role};
use crate::format::Emit;
use crate::json::{Object, Value};
use crate::session::Session;
use steno_vault::FormatError;
use steno_vault::Source;

/// How many records of a file are parsed to recognize it.
const PROBED: usize = 20;

/// Whether a file starts like the output of `droid exec`.
pub(super) fn recognises(head: &Head) -> bool {
    head.objects().take(PROBED).any(|object| {
        let has = |field| object.contains_key(field);
        let has_fields = match fields::text(&object, "type") {
            Some("message") => has("role") && has("text"),
            Some("tool_call") => has("toolName") && has("parameters"),
            Some("completion") => has("finalText"),
            _ => false,
        };
        has_fields && session_id(&object).is_some() && has("timestamp")
    })
}

fn session_id(object: &Object) -> Option<&str> {
    fields::text(object, "session_id").or_else(|| fields::text(object, "sessionId"))
}

/// Reads the session in a saved output.
pub(super) fn read(source: &Source, emit: Emit<'_>) -> Result<Session, FormatError> {
    let id = first_id(source)?.unwrap_or_else(|| record::stem(source).to_owned());
    let mut emitter = Telling::new(AGENT, &id, emit);
    let mut model = None;
    each_object(source, |object, line| match object {
        Ok(object) => tell(&mut emitter, &mut model, object, line),
        Err(problem) => emitter.problem(problem),
    })?;
    Ok(emitter.session)
}

fn first_id(source: &Source) -> Result<Option<String>, FileError> {
    Ok(Head::of(source)?.objects().find_map(|object| session_id(&object).map(str::to_owned)))
}

fn tell(emitter: &mut Telling<'_>, model: &mut Option<String>, object: Object, line: u64) {
    let at = fields::time(&object, "timestamp");
    emitter.time(at);
    if fields::text(&object, "type") == Some("system") {
        *model = fields::text(&object, "model").map(str::to_owned);
        emitter.session.project = fields::text(&object, "cwd").map(str::to_owned);
    }
    let mut entry = entry(object);
    entry.created_at = at;
    entry.message_id = entry.message_id.or(Some(format!("line {line}")));
    if entry.role == Role::Assistant {
        entry.model.clone_from(model);
    }
    emitter.entry(entry);
}

fn entry(object: Object) -> Entry {
    let text = |field| fields::text(&object, field);
    let call = text("toolCallId").or_else(|| text("id"));
    match text("type") {
        Some("message") => {
            let content = text("text").unwrap_or_default();
            let is_notice = text("role") == Some("user") && super::is_reminder(content);
            let kind = if is_notice { Kind::Notice } else { Kind::Text };
            let mut entry = Entry::new(Role::from(text("role").unwrap_or("user")), kind, content);
            entry.message_id = text("id").map(str::to_owned);
            entry
        }
        Some("tool_call") => entries::tool_call(text("toolName"), call, object.get("parameters")),
        Some("tool_result") => {
            let is_error = object.get("isError").and_then(Value::as_bool) == Some(true);
            let value = object.get("value").map(record::said).unwrap_or_default();
            entries::tool_result(call, value, is_error)
        }
        Some("completion") => completion(&object),
        Some("error") => Entry::new(Role::System, Kind::Error, text("message").unwrap_or_default()),
        _ => entries::unknown(object),
    }
}

fn completion(object: &Object) -> Entry {
    let text = fields::text(object, "finalText").unwrap_or_default();
    let mut entry = Entry::new(Role::Assistant, Kind::Text, text);
    entry.usage = fields::object(object, "usage").map(usage::anthropic);
    entry
}
