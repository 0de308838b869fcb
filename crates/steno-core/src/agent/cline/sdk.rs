//! Sessions of Cline's newer runtime: `<id>/<id>.messages.json`, with a manifest and its subagents' messages beside it.
//!
//! What a person wrote stands in a tag. Prompt tokens include those that a cache served or took.

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

/// How the name of a file of messages ends.
const MESSAGES: &str = ".messages.json";

/// The tags around what a person wrote.
const PERSONS: [&str; 2] = ["<user_input", "<user_command"];

/// Whether a file of messages is called so.
pub(super) fn is_messages(name: &str) -> bool {
    name.ends_with(MESSAGES)
}

/// The session in `folder`, if its files are such.
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
    let beside = [format!("{id}.json"), format!("{id}.compaction.json")];
    let mut sources = vec![source];
    for file in tree::files(folder)?.into_iter().filter(|file| file.parent() == Some(folder)) {
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else { continue };
        if name != main && (is_messages(name) || beside.iter().any(|known| known == name)) {
            sources.push(Source::on_disk(name, &file));
        }
    }
    Ok(Some(Bundle::new(folder, sources)))
}

/// The name of the file that holds a session's own messages.
pub(crate) fn main_file(id: &str) -> String {
    format!("{id}{MESSAGES}")
}

/// Whether a bundle is such a session.
pub(super) fn is_session(bundle: &Bundle) -> bool {
    bundle.sources.iter().any(|source| source.name().ends_with(MESSAGES))
}

fn recognises(head: &Head) -> bool {
    ["agent", "sessionId", "messages"].iter().all(|field| head.field(field).is_some())
}

/// Reads a session: its own messages, then those of its subagents.
pub(super) fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let id = bundle.root.file_name().unwrap_or(bundle.root.as_os_str()).to_string_lossy();
    let mut telling = Telling::new(AGENT, &id, emit);
    let main = main_file(&id);
    let (own, others): (Vec<_>, Vec<_>) = bundle
        .sources
        .iter()
        .filter(|source| source.name().ends_with(MESSAGES))
        .partition(|source| source.name() == main);
    for source in own {
        tell(source, &mut telling)?;
    }
    telling.session.subagent_files = others.len() as u64;
    for source in others {
        let agent = source.name().strip_suffix(MESSAGES).unwrap_or_default();
        telling.speaker = format!("subagent:{agent}");
        tell(source, &mut telling)?;
    }
    telling.speaker = PRIMARY.to_owned();
    if let Some(manifest) = bundle.get(&format!("{id}.json")) {
        match record::document(manifest)? {
            Ok(manifest) => describe(&mut telling, &manifest),
            Err(problem) => telling.problem(problem),
        }
    }
    Ok(telling.session)
}

/// Fills in what the manifest says.
fn describe(telling: &mut Telling<'_>, manifest: &Object) {
    telling.time(fields::time(manifest, "started_at"));
    telling.time(fields::time(manifest, "ended_at"));
    let session = &mut telling.session;
    session.project = text(manifest, "cwd").or(text(manifest, "workspace_root")).map(str::to_owned);
    let title = fields::object(manifest, "metadata").and_then(|it| text(it, "title"));
    session.title = title.map(str::to_owned);
}

fn tell(source: &Source, telling: &mut Telling<'_>) -> Result<(), FormatError> {
    let listing = match Listing::of(source, &["messages"])? {
        Ok(listing) => listing,
        Err(problem) => {
            telling.problem(problem);
            return Ok(());
        }
    };
    let (mut number, mut is_tagged) = (0, None);
    listing.each(|message| {
        number += 1;
        let reason = match message {
            Ok(Value::Object(message)) => {
                let entries = entries(&message, &mut is_tagged);
                return tell_message(telling, &message, entries);
            }
            Ok(_) => "not a JSON object".to_owned(),
            Err(reason) => reason,
        };
        telling.problem(Problem::of(source.path(), format!("message {number}: {reason}")));
    })?;
    Ok(())
}

/// The entries of a message. Whether people's words stand in tags shows in the first message in the user's name.
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
    let is_said = |entry: &&Entry| entry.kind == Kind::Text;
    let is_any = entries.iter().filter(is_said).any(has_tag);
    let is_tagged = *is_tagged.get_or_insert(is_any);
    let has_result = entries.iter().any(|entry| entry.kind == Kind::ToolResult);
    let is_prompt = if is_tagged { is_any } else { !has_result };
    for entry in entries.iter_mut().filter(|entry| entry.kind == Kind::Text && !is_prompt) {
        entry.kind = Kind::Notice;
    }
    entries
}

fn tell_message(telling: &mut Telling<'_>, message: &Object, mut entries: Vec<Entry>) {
    let at = fields::time(message, "ts");
    telling.time(at);
    if let Some(metrics) = fields::object(message, "metrics") {
        if let Some(first) = entries.iter_mut().find(|entry| entry.role == Role::Assistant) {
            first.usage = Some(usage::inclusive(metrics));
        }
        if let Some(cost) = metrics.get("cost").and_then(Value::as_f64) {
            *telling.session.totals.cost.get_or_insert(0.0) += cost;
        }
    }
    let model = fields::object(message, "modelInfo").and_then(|it| text(it, "id"));
    for mut entry in entries {
        entry.created_at = at;
        entry.message_id = text(message, "id").map(str::to_owned);
        if entry.role == Role::Assistant {
            entry.model = model.map(str::to_owned);
        }
        telling.entry(entry);
    }
}
