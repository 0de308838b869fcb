//! Reads Qwen Code's sessions: logs with one record per line, linked by `parentUuid`. Older versions wrote chats in
//! Gemini CLI's format.
//!
//! All records are read, including branches that a rewind abandoned. Subagents have files of their own.

mod subagents;

use super::entries;
use super::fields;
use super::gemini::{self, parts};
use super::head::Head;
use super::ids::Ids;
use super::record;
use super::telling::Telling;
use crate::agent::json_lines::each_object;
use crate::durable::FileError;
use crate::entry::{Entry, Kind, PRIMARY, Role, Usage};
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::json::{Object, Value};
use crate::problem::Problem;
use crate::session::Session;
use steno_vault::{Bundle, Source};

/// The agent's name.
pub const AGENT: &str = "qwen";

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

/// How many records of a file are parsed to recognize it.
const PROBED: usize = 20;

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let mut bundles = subagents::grouped(record::candidates(tree, is_log)?)?;
    bundles.extend(gemini::sessions(tree, is_old_chat)?);
    Ok(bundles)
}

/// Whether a file starts as a session does, of any version.
pub(crate) fn recognises(head: &Head) -> bool {
    is_log(head) || is_old_chat(head)
}

fn is_log(head: &Head) -> bool {
    let is_cut_off = is_named(&head.fields()) && head.shows(r#""parts":["#);
    is_cut_off || head.objects().take(PROBED).any(|object| is_record(&object))
}

fn is_old_chat(head: &Head) -> bool {
    gemini::is_chat(head) && head.shows(r#""type":"qwen""#)
}

/// Whether a record is Qwen Code's. Claude Code's records have the same fields except `parts` and `systemPayload`.
fn is_record(object: &Object) -> bool {
    let message = fields::object(object, "message");
    let has_parts = message.is_some_and(|message| message.contains_key("parts"));
    is_named(object) && (has_parts || object.contains_key("systemPayload"))
}

fn is_named(object: &Object) -> bool {
    ["uuid", "sessionId", "type"].iter().all(|field| object.contains_key(*field))
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let (agents, own): (Vec<_>, Vec<_>) =
        bundle.sources.iter().partition(|source| subagents::is_beside(source));
    let Some(source) = own.first() else {
        return Err(FormatError::Invalid(Problem::of(&bundle.root, "no session in it")));
    };
    let head = Head::of(source)?;
    if !is_log(&head) && is_old_chat(&head) {
        return gemini::read_as(AGENT, bundle, emit);
    }
    let id_of = |object: Object| fields::text(&object, "sessionId").map(str::to_owned);
    let record_id = id_of(head.fields()).or_else(|| head.objects().find_map(id_of));
    let is_agent = fields::text(&head.fields(), "agentId").is_some();
    let id = record_id.as_deref().filter(|_| !is_agent).unwrap_or(record::stem(source));
    let mut log = Log { emitter: Telling::new(AGENT, id, emit), ids: Ids::default() };
    log.file(source)?;
    for source in agents {
        if let Some(agent) = subagents::agent(source) {
            log.emitter.speaker = format!("subagent:{agent}");
            log.file(source)?;
            log.emitter.session.subagent_files += 1;
        }
    }
    let mut session = log.emitter.session;
    session.parent = record_id.filter(|_| is_agent).or(session.parent);
    Ok(session)
}

struct Log<'a> {
    emitter: Telling<'a>,
    ids: Ids,
}

impl Log<'_> {
    fn file(&mut self, source: &Source) -> Result<(), FileError> {
        each_object(source, |object, _| match object {
            Ok(object) => self.tell(object),
            Err(problem) => self.emitter.problem(problem),
        })
    }

    fn tell(&mut self, object: Object) {
        let at = fields::time(&object, "timestamp");
        self.emitter.time(at);
        if self.emitter.speaker == PRIMARY {
            self.describe(&object);
        }
        let message_id = fields::text(&object, "uuid").map(|uuid| self.ids.own(uuid));
        let parent = fields::text(&object, "parentUuid").map(str::to_owned);
        for mut entry in entries(object) {
            entry.created_at = at;
            entry.message_id.clone_from(&message_id);
            entry.parent_id.clone_from(&parent);
            self.emitter.entry(entry);
        }
    }

    /// Fills in the session's metadata from a record. Later records override earlier ones.
    fn describe(&mut self, object: &Object) {
        let session = &mut self.emitter.session;
        let owned = |field| fields::text(object, field).map(str::to_owned);
        session.project = owned("cwd").or(session.project.take());
        session.branch = owned("gitBranch").or(session.branch.take());
        let payload = fields::object(object, "systemPayload");
        let text = |field| payload.and_then(|payload| fields::text(payload, field));
        match fields::text(object, "subtype") {
            Some("custom_title") => session.title = text("customTitle").map(str::to_owned),
            Some("parent_session") => session.parent = text("parentSessionId").map(str::to_owned),
            _ => {}
        }
        if let Some(origin) = fields::object(object, "forkedFrom") {
            session.parent = fields::text(origin, "sessionId").map(str::to_owned);
        }
    }
}

fn entries(object: Object) -> Vec<Entry> {
    match (fields::text(&object, "type"), fields::text(&object, "subtype")) {
        (Some("user"), None) => user(&object),
        (Some("user"), Some(_)) => notices(&object, &Role::User),
        (Some("assistant"), _) => assistant(&object),
        (Some("tool_result"), _) => results(&object),
        (Some("system"), Some("chat_compression")) => {
            let mut entry = Entry::new(Role::System, Kind::Compaction, "");
            entry.metadata = object.get("systemPayload").and_then(Value::as_object).cloned();
            vec![entry]
        }
        (Some("system"), Some("notification" | "cron")) => notices(&object, &Role::System),
        _ => vec![entries::unknown(object)],
    }
}

fn content(object: &Object) -> &Value {
    let message = fields::object(object, "message");
    message.and_then(|message| message.get("parts")).unwrap_or(&Value::Null)
}

/// Decodes a prompt: the typed text, then notices for what hooks and referenced files added.
fn user(object: &Object) -> Vec<Entry> {
    let provenance = fields::text(object, "provenance");
    if provenance.is_some_and(|provenance| provenance != "real_user") {
        return notices(object, &Role::User);
    }
    let payload = fields::object(object, "systemPayload");
    let typed = payload.and_then(|payload| fields::text(payload, "displayText"));
    let mut entries = parts::entries(content(object), &Role::User);
    if let Some(typed) = typed {
        for entry in entries.iter_mut().filter(|entry| entry.kind == Kind::Text) {
            entry.kind = Kind::Notice;
        }
        entries.retain(|entry| entry.content != typed);
        entries.insert(0, Entry::new(Role::User, Kind::Text, typed));
    } else if entries.is_empty() {
        entries.push(Entry::new(Role::User, Kind::Text, ""));
    }
    entries
}

/// Decodes a record with content that `role` did not write, as notices.
fn notices(object: &Object, role: &Role) -> Vec<Entry> {
    let mut entries = parts::entries(content(object), role);
    let payload = fields::object(object, "systemPayload");
    if let (true, Some(payload)) = (entries.is_empty(), payload) {
        let text = fields::text(payload, "displayText").unwrap_or_default();
        entries.push(Entry::new(role.clone(), Kind::Notice, text));
    }
    for entry in entries.iter_mut().filter(|entry| entry.kind == Kind::Text) {
        entry.kind = Kind::Notice;
    }
    entries
}

fn assistant(object: &Object) -> Vec<Entry> {
    let mut entries = parts::entries(content(object), &Role::Assistant);
    if entries.is_empty() {
        entries.push(Entry::new(Role::Assistant, Kind::Text, ""));
    }
    for entry in &mut entries {
        entry.model = fields::text(object, "model").map(str::to_owned);
    }
    entries[0].usage = fields::object(object, "usageMetadata").map(usage);
    entries
}

fn results(object: &Object) -> Vec<Entry> {
    let result = fields::object(object, "toolCallResult");
    let status = result.and_then(|result| fields::text(result, "status"));
    let mut entries = parts::entries(content(object), &Role::Tool);
    for entry in &mut entries {
        entry.role = Role::Tool;
        entry.kind = Kind::ToolResult;
        if matches!(status, Some("error" | "cancelled")) {
            let metadata = entry.metadata.get_or_insert_default();
            metadata.insert("is_error".to_owned(), Value::Bool(true));
        }
    }
    entries
}

/// Parses usage. Only some providers include thoughts in `candidatesTokenCount`, but the total always does.
fn usage(tokens: &Object) -> Usage {
    let count = |field| fields::count(tokens, field);
    let (prompt, cached) = (count("promptTokenCount"), count("cachedContentTokenCount"));
    let reasoning = count("thoughtsTokenCount");
    let output = count("totalTokenCount").checked_sub(prompt);
    Usage {
        input: prompt.saturating_sub(cached),
        cache_read: cached,
        output: output.unwrap_or_else(|| count("candidatesTokenCount") + reasoning),
        reasoning,
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests;
