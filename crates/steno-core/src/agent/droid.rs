//! Reads sessions of Factory's droid: a start record, then one message per line. Usage is in a settings file beside it.
//!
//! Also reads the output of `droid exec --output-format stream-json`, which is another format.

mod stream;

#[cfg(test)]
mod tests;

use super::entries;
use super::fields;
use super::head::Head;
use super::record::{self, blocks};
use super::telling::Telling;
use crate::agent::json_lines::each_object;
use crate::durable::FileError;
use crate::entry::{Entry, Kind, Role, Usage};
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::json::Object;
use crate::problem::Problem;
use crate::session::Session;
use steno_vault::{Bundle, Source};

/// The agent's name.
pub const AGENT: &str = "droid";

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

/// The suffix of settings files.
const SETTINGS: &str = ".settings.json";

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let mut bundles = record::candidates(tree, recognises)?;
    for bundle in &mut bundles {
        let settings = bundle.root.with_extension(&SETTINGS[1..]);
        if settings.is_file() {
            let name = settings.file_name().unwrap_or_default().to_string_lossy().into_owned();
            bundle.sources.push(Source::on_disk(name, settings));
        }
    }
    Ok(bundles)
}

/// Whether a file starts as a session does, or as what `droid exec` prints.
pub(crate) fn recognises(head: &Head) -> bool {
    is_store(head) || stream::recognises(head)
}

fn is_store(head: &Head) -> bool {
    fields::text(&head.fields(), "type") == Some("session_start")
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let is_settings = |source: &&Source| source.name().ends_with(SETTINGS);
    let Some(source) = bundle.sources.iter().find(|source| !is_settings(source)) else {
        return Err(FormatError::Invalid(Problem::of(&bundle.root, "no session in it")));
    };
    let head = Head::of(source)?;
    if !is_store(&head) && stream::recognises(&head) {
        return stream::read(source, emit);
    }
    let fields = head.fields();
    let record_id = fields::text(&fields, "id").filter(|_| is_store(&head));
    let mut emitter = Telling::new(AGENT, record_id.unwrap_or(record::stem(source)), emit);
    each_object(source, |object, line| match object {
        Ok(object) => tell(&mut emitter, object, line),
        Err(problem) => emitter.problem(problem),
    })?;
    if let Some(settings) = bundle.sources.iter().find(is_settings) {
        match record::document(settings)? {
            Ok(settings) => describe(&mut emitter.session, &settings),
            Err(problem) => emitter.problem(problem),
        }
    }
    Ok(emitter.session)
}

fn tell(emitter: &mut Telling<'_>, object: Object, line: u64) {
    let at = fields::time(&object, "timestamp");
    emitter.time(at);
    let id = fields::text(&object, "id").map_or_else(|| format!("line {line}"), str::to_owned);
    let parent = fields::text(&object, "parentId").map(str::to_owned);
    let entries = match (fields::text(&object, "type"), fields::object(&object, "message")) {
        (Some("session_start"), _) => return start(&mut emitter.session, &object),
        (Some("message"), Some(fields)) => message(fields),
        (Some("compaction_state"), _) => compaction(object),
        _ => vec![entries::unknown(object)],
    };
    for mut entry in entries {
        entry.created_at = at;
        entry.message_id = Some(id.clone());
        entry.parent_id.clone_from(&parent);
        emitter.entry(entry);
    }
}

fn start(session: &mut Session, object: &Object) {
    let title = fields::text(object, "title").or_else(|| fields::text(object, "sessionTitle"));
    session.title = title.map(str::to_owned);
    session.project = fields::text(object, "cwd").map(str::to_owned);
}

fn message(message: &Object) -> Vec<Entry> {
    let role = Role::from(fields::text(message, "role").unwrap_or("user"));
    let mut entries = blocks::entries(message, &role);
    if role == Role::Assistant && entries.is_empty() {
        entries.push(Entry::new(Role::Assistant, Kind::Text, ""));
    }
    let is_user_only = fields::text(message, "visibility") == Some("user_only");
    let model = fields::text(message, "model").filter(|_| role == Role::Assistant);
    for entry in &mut entries {
        let is_reminder = role == Role::User && is_reminder(&entry.content);
        if entry.kind == Kind::Text && (is_user_only || is_reminder) {
            entry.kind = Kind::Notice;
        }
        entry.model = model.map(str::to_owned);
    }
    entries
}

/// Whether droid inserted a text before the prompt.
fn is_reminder(text: &str) -> bool {
    text.trim_start().starts_with("<system-reminder>")
}

fn compaction(mut object: Object) -> Vec<Entry> {
    let summary = object.shift_remove("summary").map(|summary| record::said(&summary));
    let mut boundary = Entry::new(Role::System, Kind::Compaction, "");
    boundary.metadata = Some(object);
    vec![boundary, Entry::new(Role::User, Kind::Notice, summary.unwrap_or_default())]
}

/// Fills in the model and the usage of the whole session from the settings.
fn describe(session: &mut Session, settings: &Object) {
    session.models.extend(fields::text(settings, "model").map(str::to_owned));
    let Some(tokens) = fields::object(settings, "tokenUsage") else { return };
    let count = |field| fields::count(tokens, field);
    session.totals.usage = Usage {
        input: count("inputTokens"),
        cache_read: count("cacheReadTokens"),
        cache_write: count("cacheCreationTokens"),
        output: count("outputTokens"),
        reasoning: count("thinkingTokens"),
        ..Usage::default()
    };
}
