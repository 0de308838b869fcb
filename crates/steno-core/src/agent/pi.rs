//! Pi: a session's header, then one entry per line; since version 2 they form a tree.
//!
//! All branches are told, in the order of the file. What a model's answer cost stands in it.

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
    let typed = fields::text(fields, "type") == Some("session");
    typed && ["id", "timestamp", "cwd"].iter().all(|field| fields::text(fields, field).is_some())
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let Some(source) = bundle.sources.first() else {
        return Err(FormatError::Invalid(Problem::of(&bundle.root, "no file in it")));
    };
    let fields = Head::of(source)?.fields();
    let stated = fields::text(&fields, "id").filter(|_| is_header(&fields));
    let mut telling = Telling::new(AGENT, stated.unwrap_or(record::stem(source)), emit);
    each_object(source, |object, line| match object {
        Ok(object) => tell(&mut telling, object, line),
        Err(problem) => telling.problem(problem),
    })?;
    Ok(telling.session)
}

fn tell(telling: &mut Telling<'_>, object: Object, line: u64) {
    let at = fields::time(&object, "timestamp");
    telling.time(at);
    if fields::text(&object, "type") == Some("session") {
        return header(&mut telling.session, object);
    }
    // The first version gave its entries no ids.
    let id = fields::text(&object, "id").map_or_else(|| format!("line {line}"), str::to_owned);
    let parent = fields::text(&object, "parentId").map(str::to_owned);
    for mut entry in entries(&mut telling.session, object) {
        entry.created_at = at;
        entry.message_id = Some(id.clone());
        entry.parent_id.clone_from(&parent);
        telling.entry(entry);
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
    let said = |field| fields::text(&object, field).unwrap_or_default();
    match said("type") {
        "message" => match fields::object(&object, "message") {
            Some(message) => message::entries(session, message),
            None => vec![entries::unknown(object)],
        },
        "compaction" => {
            let mut seam = Entry::new(Role::System, Kind::Compaction, "");
            seam.metadata = Some(without(&object, "summary"));
            vec![seam, Entry::new(Role::User, Kind::Notice, said("summary"))]
        }
        "branch_summary" => vec![Entry::new(Role::User, Kind::Notice, said("summary"))],
        "custom_message" => {
            let content = object.get("content").map(record::said).unwrap_or_default();
            vec![Entry::new(Role::User, Kind::Notice, content)]
        }
        "model_change" => vec![notice(&object, "model", said("modelId"))],
        "thinking_level_change" => vec![notice(&object, "thinking", said("thinkingLevel"))],
        "session_info" => {
            session.title = fields::text(&object, "name").map(str::to_owned);
            vec![notice(&object, "name", said("name"))]
        }
        "label" => vec![notice(&object, "label", said("label"))],
        _ => vec![entries::unknown(object)],
    }
}

/// What the program was set to.
fn notice(object: &Object, what: &str, value: &str) -> Entry {
    let mut entry = Entry::new(Role::System, Kind::Notice, format!("{what}: {value}"));
    entry.metadata = Some(object.clone());
    entry
}

fn without(object: &Object, field: &str) -> Object {
    let mut rest = object.clone();
    rest.shift_remove(field);
    rest
}
