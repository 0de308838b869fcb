//! Reads Pi's sessions: a header, then one entry per line. Since version 2 the entries form a tree.
//!
//! All branches are read, in file order. Each answer has its cost.

mod message;

#[cfg(test)]
mod tests;

use super::entries;
use super::fields;
use super::head::Head;
use super::record;
use super::telling::Telling;
use crate::agent::json_lines::each_object;
use crate::durable::FileError;
use crate::entry::{Entry, Kind, Role};
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::json::Object;
use crate::problem::Problem;
use crate::session::Session;
use steno_vault::Bundle;

/// The agent's name.
pub const AGENT: &str = "pi";

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    record::candidates(tree, recognises)
}

/// Whether a file starts as a session does.
pub(crate) fn recognises(head: &Head) -> bool {
    is_header(&head.fields())
}

fn is_header(fields: &Object) -> bool {
    let is_session = fields::text(fields, "type") == Some("session");
    is_session
        && ["id", "timestamp", "cwd"].iter().all(|field| fields::text(fields, field).is_some())
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let Some(source) = bundle.sources.first() else {
        return Err(FormatError::Invalid(Problem::of(&bundle.root, "no file in it")));
    };
    let fields = Head::of(source)?.fields();
    let header_id = fields::text(&fields, "id").filter(|_| is_header(&fields));
    let mut emitter = Telling::new(AGENT, header_id.unwrap_or(record::stem(source)), emit);
    each_object(source, |object, line| match object {
        Ok(object) => tell(&mut emitter, object, line),
        Err(problem) => emitter.problem(problem),
    })?;
    Ok(emitter.session)
}

fn tell(emitter: &mut Telling<'_>, object: Object, line: u64) {
    let at = fields::time(&object, "timestamp");
    emitter.time(at);
    if fields::text(&object, "type") == Some("session") {
        return header(&mut emitter.session, object);
    }
    // Entries of version 1 have no ids.
    let id = fields::text(&object, "id").map_or_else(|| format!("line {line}"), str::to_owned);
    let parent = fields::text(&object, "parentId").map(str::to_owned);
    for mut entry in entries(&mut emitter.session, object) {
        entry.created_at = at;
        entry.message_id = Some(id.clone());
        entry.parent_id.clone_from(&parent);
        emitter.entry(entry);
    }
}

fn header(session: &mut Session, object: Object) {
    session.project = fields::text(&object, "cwd").map(str::to_owned);
    session.parent = fields::text(&object, "parentSession").map(str::to_owned);
    if let Some(version) = object.get("version") {
        session.extra.insert("version".to_owned(), version.clone());
    }
}

fn entries(session: &mut Session, object: Object) -> Vec<Entry> {
    let text = |field| fields::text(&object, field).unwrap_or_default();
    match text("type") {
        "message" => match fields::object(&object, "message") {
            Some(message) => message::entries(session, message),
            None => vec![entries::unknown(object)],
        },
        "compaction" => {
            let mut boundary = Entry::new(Role::System, Kind::Compaction, "");
            boundary.metadata = Some(without(&object, "summary"));
            vec![boundary, Entry::new(Role::User, Kind::Notice, text("summary"))]
        }
        "branch_summary" => vec![Entry::new(Role::User, Kind::Notice, text("summary"))],
        "custom_message" => {
            let content = object.get("content").map(record::said).unwrap_or_default();
            vec![Entry::new(Role::User, Kind::Notice, content)]
        }
        "model_change" => vec![notice(&object, "model", text("modelId"))],
        "thinking_level_change" => vec![notice(&object, "thinking", text("thinkingLevel"))],
        "session_info" => {
            session.title = fields::text(&object, "name").map(str::to_owned);
            vec![notice(&object, "name", text("name"))]
        }
        "label" => vec![notice(&object, "label", text("label"))],
        _ => vec![entries::unknown(object)],
    }
}

/// The notice of a changed setting.
fn notice(object: &Object, setting: &str, value: &str) -> Entry {
    let mut entry = Entry::new(Role::System, Kind::Notice, format!("{setting}: {value}"));
    entry.metadata = Some(object.clone());
    entry
}

fn without(object: &Object, field: &str) -> Object {
    let mut rest = object.clone();
    rest.shift_remove(field);
    rest
}
