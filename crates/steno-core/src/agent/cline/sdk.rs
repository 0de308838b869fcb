//! Reads sessions of Cline's newer runtime: `<id>/<id>.messages.json`, beside a manifest and subagents' messages.
//!
//! Text that a person typed is in a tag. Prompt tokens include cache reads and writes.

use std::path::Path;

use super::AGENT;
use crate::agent::fields::{self, text};
use crate::agent::head::Head;
use crate::agent::listing::Listing;
use crate::agent::record::{self, blocks};
use crate::agent::telling::Telling;
use crate::agent::usage;
use crate::durable::FileError;
use crate::entry::{Entry, Kind, PRIMARY, Role};
use crate::format::tree;
use crate::format::{Emit, FormatError};
use crate::json::{Object, Value};
use crate::problem::Problem;
use crate::session::Session;
use steno_vault::{Bundle, Source};

/// The suffix of files of messages.
const MESSAGES: &str = ".messages.json";

/// The tags around text that a person typed.
const PERSONS: [&str; 2] = ["<user_input", "<user_command"];

/// Whether `name` is that of a file of messages.
pub(super) fn is_messages(name: &str) -> bool {
    name.ends_with(MESSAGES)
}

/// Bundles the session in `folder`. None if its files are not Cline's.
pub(super) fn session(folder: &Path) -> Result<Option<Bundle>, FileError> {
    let Some(id) = folder.file_name().and_then(|name| name.to_str()) else { return Ok(None) };
    let main = main_file(id);
    if !folder.join(&main).is_file() {
        return Ok(None);
    }
    let source = Source::on_disk(main.as_str(), folder.join(&main));
    if !recognises(&Head::of_document(&source)?) {
        return Ok(None);
    }
    let metadata = [format!("{id}.json"), format!("{id}.compaction.json")];
    let mut sources = vec![source];
    for file in tree::files(folder)?.into_iter().filter(|file| file.parent() == Some(folder)) {
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else { continue };
        if name != main && (is_messages(name) || metadata.iter().any(|known| known == name)) {
            sources.push(Source::on_disk(name, &file));
        }
    }
    Ok(Some(Bundle::new(folder, sources)))
}

/// The name of a session's main file of messages.
pub(crate) fn main_file(id: &str) -> String {
    format!("{id}{MESSAGES}")
}

/// Whether a bundle is a session of the newer runtime.
pub(super) fn is_session(bundle: &Bundle) -> bool {
    bundle.sources.iter().any(|source| source.name().ends_with(MESSAGES))
}

fn recognises(head: &Head) -> bool {
    ["agent", "sessionId", "messages"].iter().all(|field| head.field(field).is_some())
}

/// Reads the session's own messages, then its subagents' messages.
pub(super) fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let id = bundle.root.file_name().unwrap_or(bundle.root.as_os_str()).to_string_lossy();
    let mut emitter = Telling::new(AGENT, &id, emit);
    let main = main_file(&id);
    let (own, others): (Vec<_>, Vec<_>) = bundle
        .sources
        .iter()
        .filter(|source| source.name().ends_with(MESSAGES))
        .partition(|source| source.name() == main);
    for source in own {
        tell(source, &mut emitter)?;
    }
    emitter.session.subagent_files = others.len() as u64;
    for source in others {
        let agent = source.name().strip_suffix(MESSAGES).unwrap_or_default();
        emitter.speaker = format!("subagent:{agent}");
        tell(source, &mut emitter)?;
    }
    emitter.speaker = PRIMARY.to_owned();
    if let Some(manifest) = bundle.get(&format!("{id}.json")) {
        match record::document(manifest)? {
            Ok(manifest) => describe(&mut emitter, &manifest),
            Err(problem) => emitter.problem(problem),
        }
    }
    Ok(emitter.session)
}

/// Fills in the session from the manifest.
fn describe(emitter: &mut Telling<'_>, manifest: &Object) {
    emitter.time(fields::time(manifest, "started_at"));
    emitter.time(fields::time(manifest, "ended_at"));
    let session = &mut emitter.session;
    session.project = text(manifest, "cwd").or(text(manifest, "workspace_root")).map(str::to_owned);
    let title = fields::object(manifest, "metadata").and_then(|it| text(it, "title"));
    session.title = title.map(str::to_owned);
}

fn tell(source: &Source, emitter: &mut Telling<'_>) -> Result<(), FormatError> {
    let listing = match Listing::of(source, &["messages"])? {
        Ok(listing) => listing,
        Err(problem) => {
            emitter.problem(problem);
            return Ok(());
        }
    };
    let (mut number, mut is_tagged) = (0, None);
    listing.each(|message| {
        number += 1;
        let reason = match message {
            Ok(Value::Object(message)) => {
                let entries = entries(&message, &mut is_tagged);
                return tell_message(emitter, &message, entries);
            }
            Ok(_) => "not a JSON object".to_owned(),
            Err(reason) => reason,
        };
        emitter.problem(Problem::of(source.path(), format!("message {number}: {reason}")));
    })?;
    Ok(())
}

/// Decodes a message into entries. The first user message shows whether typed text is in tags.
fn entries(message: &Object, is_tagged: &mut Option<bool>) -> Vec<Entry> {
    let role = Role::from(text(message, "role").unwrap_or("user"));
    let mut entries = blocks::entries(message, &role);
    if role == Role::Assistant {
        if entries.is_empty() {
            entries.push(Entry::new(Role::Assistant, Kind::Text, ""));
        }
        return entries;
    }
    let has_tag = |entry: &Entry| PERSONS.iter().any(|tag| entry.content.contains(tag));
    let is_text = |entry: &&Entry| entry.kind == Kind::Text;
    let has_typed = entries.iter().filter(is_text).any(has_tag);
    let is_tagged = *is_tagged.get_or_insert(has_typed);
    let has_result = entries.iter().any(|entry| entry.kind == Kind::ToolResult);
    let is_prompt = if is_tagged { has_typed } else { !has_result };
    for entry in entries.iter_mut().filter(|entry| entry.kind == Kind::Text && !is_prompt) {
        entry.kind = Kind::Notice;
    }
    entries
}

fn tell_message(emitter: &mut Telling<'_>, message: &Object, mut entries: Vec<Entry>) {
    let at = fields::time(message, "ts");
    emitter.time(at);
    if let Some(metrics) = fields::object(message, "metrics") {
        if let Some(first) = entries.iter_mut().find(|entry| entry.role == Role::Assistant) {
            first.usage = Some(usage::inclusive(metrics));
        }
        if let Some(cost) = metrics.get("cost").and_then(Value::as_f64) {
            *emitter.session.totals.cost.get_or_insert(0.0) += cost;
        }
    }
    let model = fields::object(message, "modelInfo").and_then(|it| text(it, "id"));
    for mut entry in entries {
        entry.created_at = at;
        entry.message_id = text(message, "id").map(str::to_owned);
        if entry.role == Role::Assistant {
            entry.model = model.map(str::to_owned);
        }
        emitter.entry(entry);
    }
}
