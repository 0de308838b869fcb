//! Reads the tasks of Cline and Roo Code, one folder each.
//!
//! `ui_messages.json` is what the user saw: prompts, answers, tools, usage and times. If it is missing,
//! `api_conversation_history.json`, which is what the model saw, is read instead. Both are JSON arrays that Cline
//! rewrites as a whole. Newer versions have another format, which `sdk` reads.

mod api;
pub(super) mod sdk;
mod tools;
mod ui;

use std::path::Path;

use super::document;
use super::fields::{items, string};
use super::head::Head;
use super::listing::Listing;
use super::output::Output;
use crate::durable::FileError;
use crate::entry::EntryError;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::json::{Object, Value};
use crate::problem::Problem;
use crate::session::{Session, SessionId};
use steno_vault::{Bundle, Source};

/// The agent's name.
pub const AGENT: &str = "cline";

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

const SCREEN: &str = "ui_messages.json";
const CONVERSATION: &str = "api_conversation_history.json";

/// Optional files with metadata of the task.
const TASK: &str = "task_metadata.json";
const HISTORY_ITEM: &str = "history_item.json";

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    if !tree.is_folder() {
        let path = tree.root();
        let name = path.file_name().unwrap_or_default();
        let is_ours = name == SCREEN || name == CONVERSATION;
        let Some(folder) = path.parent() else { return Ok(Vec::new()) };
        let task = if is_ours { task(folder)? } else { None };
        let session = sdk::session(folder)?.filter(|session| session.sources[0].path() == path);
        return Ok(task.into_iter().chain(session).collect());
    }
    let mut bundles = Vec::new();
    let is_mark = |name: &str| name == SCREEN || name == CONVERSATION || sdk::is_messages(name);
    for folder in tree.folders_with(is_mark) {
        bundles.extend(task(folder)?);
        bundles.extend(sdk::session(folder)?);
    }
    Ok(bundles)
}

/// Bundles the task in `folder`. None if its files are not Cline's.
fn task(folder: &Path) -> Result<Option<Bundle>, FileError> {
    let mut sources = Vec::new();
    for name in [SCREEN, CONVERSATION] {
        let path = folder.join(name);
        if path.is_file() {
            let source = Source::on_disk(name, path);
            if recognises(name, &Head::of_document(&source)?) {
                sources.push(source);
            }
        }
    }
    if sources.is_empty() {
        return Ok(None);
    }
    let metadata = [TASK, HISTORY_ITEM].map(|name| (name, folder.join(name)));
    let metadata = metadata.into_iter().filter(|(_, path)| path.is_file());
    sources.extend(metadata.map(|(name, path)| Source::on_disk(name, path)));
    Ok(Some(Bundle::new(folder, sources)))
}

fn recognises(name: &str, head: &Head) -> bool {
    let Some(item) = head.first_item() else { return false };
    match name {
        SCREEN => item.field("ts").is_some() && item.field("type").is_some(),
        _ => item.field("role").is_some(),
    }
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    if sdk::is_session(bundle) {
        return sdk::read(bundle, emit);
    }
    let native_id = bundle.root.file_name().unwrap_or(bundle.root.as_os_str());
    let native_id = native_id.to_string_lossy().into_owned();
    let mut output = Output::new(AGENT, &native_id, emit);
    let mut session = Session::new(SessionId::for_native(AGENT, &native_id), AGENT);
    session.native_id = Some(native_id);
    if let Some(source) = bundle.get(SCREEN) {
        let mut screen = ui::Screen::new(&mut output);
        each(source, |index, message| match message {
            Ok(message) => screen.message(index, &message),
            Err(problem) => screen.output.problem(problem),
        })?;
        session.totals.cost = screen.finish();
    } else if let Some(source) = bundle.get(CONVERSATION) {
        each(source, |index, message| match message {
            Ok(message) => api::message(index, &message, &mut output),
            Err(problem) => output.problem(problem),
        })?;
    } else {
        return Err(FormatError::Invalid(Problem::of(&bundle.root, "no messages in it")));
    }
    describe(bundle, &mut session, &mut output);
    Ok(session)
}

/// Passes each object of the array in `source` to `take` with its index. Any other item is a problem.
fn each(
    source: &Source,
    mut take: impl FnMut(usize, Result<Object, Problem>),
) -> Result<(), FormatError> {
    let listing = Listing::of(source, &[])?.map_err(FormatError::Invalid)?;
    let mut index = 0;
    listing.each(|item| {
        let object = match item {
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) => Err(EntryError::NotAnObject.to_string()),
            Err(reason) => Err(reason),
        };
        let bad = |why| Problem::of(source.path(), format!("message {}: {why}", index + 1));
        take(index, object.map_err(bad));
        index += 1;
    })?;
    Ok(())
}

/// Fills in the session from the metadata files. A malformed file is reported as a problem.
fn describe(bundle: &Bundle, session: &mut Session, output: &mut Output<'_>) {
    for source in [TASK, HISTORY_ITEM].iter().filter_map(|name| bundle.get(name)) {
        let metadata = match document::parse(source) {
            Ok(metadata) => metadata,
            Err(FormatError::Invalid(problem)) => {
                output.problem(problem);
                continue;
            }
            Err(FormatError::File(error)) => {
                output.problem(Problem::of(source.path(), error));
                continue;
            }
        };
        for used in items(&metadata["model_usage"]) {
            session.models.extend(string(&used["model_id"]));
        }
        let folder = [&metadata["workspace"], &metadata["cwdOnTaskInitialization"]];
        session.project = folder.into_iter().find_map(string).or(session.project.take());
        session.parent = string(&metadata["parentTaskId"]).or(session.parent.take());
    }
}

#[cfg(test)]
mod tests;
