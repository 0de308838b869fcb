//! Reads one context as one session, from the files of any release of chibi.
//!
//! The log comes first (`transcript.jsonl`, partitions, the active partition, the archive), then the window in
//! `context.jsonl` for entries that the log lacks: some releases wrote entries to only one of them.

use std::collections::HashSet;

use super::convert::{entry_of, identity, native_mut};
use super::debug::DebugFile;
use super::find::{
    ACTIVE, ARCHIVE, CONTEXT, LOG, MANIFEST, MARKDOWN, META, OLD_CONTEXT, PARTITIONS, context_name,
    is_named, old_context,
};
use super::line::Line;
use super::{AGENT, inbox, markdown, merge, partition, records, responses};
use crate::durable::FileError;
use crate::entry::{Entry, EntryError, Kind, Numbering, Role};
use crate::json::{Object, Value};
use crate::problem::Problem;
use crate::session::{Session, SessionId, Transcript};
use crate::timestamp::Timestamp;
use steno_vault::FormatError;
use steno_vault::{Bundle, Source};

/// Reads one context.
pub fn read(bundle: &Bundle) -> Result<Transcript, FormatError> {
    let name = context_name(bundle);
    let mut session = Session::new(SessionId::for_native(AGENT, &name), AGENT);
    session.native_id = Some(name.clone());
    let mut reading = Reading { bundle, problems: Vec::new() };
    let mut entries = reading.conversation()?;
    session.started = reading.created();
    session.totals.cost = reading.add_debug_lines(&mut entries)?;
    if let Some(source) = bundle.get(inbox::INBOX) {
        entries.extend(reading.each(source, inbox::entry_of)?);
    }

    let mut transcript = Transcript::new(session);
    let mut numbering = Numbering::new(AGENT, &name);
    let mut ids = HashSet::new();
    for mut entry in entries {
        if !entry.entry_id.is_nil() && !ids.insert(entry.entry_id) {
            keep_second_id(&mut entry);
        }
        numbering.assign(&mut entry);
        transcript.push(entry);
    }
    transcript.problems = reading.problems;
    Ok(transcript)
}

/// Clears an id that an earlier entry already has, and keeps it as the line's id.
fn keep_second_id(entry: &mut Entry) {
    let id = std::mem::take(&mut entry.entry_id);
    native_mut(entry).insert("id".to_owned(), id.hyphenated().to_string().into());
}

struct Reading<'a> {
    bundle: &'a Bundle,
    problems: Vec<Problem>,
}

impl<'a> Reading<'a> {
    fn conversation(&mut self) -> Result<Vec<Entry>, FileError> {
        let mut log: Vec<Entry> = Vec::new();
        let mut seen = HashSet::new();
        for source in self.log_sources() {
            let entries = self.each(source, entry)?;
            let ids: Vec<_> = entries.iter().filter_map(identity).collect();
            let is_new = |entry: &Entry| !identity(entry).is_some_and(|id| seen.contains(&id));
            log.extend(entries.into_iter().filter(is_new));
            seen.extend(ids);
        }
        let window = self.window()?;
        if log.is_empty() {
            log = self.markdown(window.as_deref().unwrap_or_default())?;
        }
        Ok(match window {
            Some(window) => merge::merge(log, window),
            None => log,
        })
    }

    /// The append-only files, oldest first.
    fn log_sources(&self) -> Vec<&'a Source> {
        let sources = &self.bundle.sources;
        let manifest = self.bundle.get(MANIFEST).and_then(|source| source.bytes().ok());
        let partitions = sources.iter().filter(|source| source.name().starts_with(PARTITIONS));
        // Earlier versions of the window, which chibi has rewritten since. Their lines are still part of the
        // conversation.
        let earlier = self.bundle.earlier.iter().filter(|source| source.name() == CONTEXT);
        let mut log: Vec<_> = earlier.chain(self.bundle.get(LOG)).collect();
        log.extend(partition::in_order(partitions.collect(), manifest.as_deref()));
        log.extend(self.bundle.get(ACTIVE));
        log.extend(self.bundle.get(ARCHIVE));
        log
    }

    /// Reads the active conversation; `None` if the context has no file for it.
    fn window(&mut self) -> Result<Option<Vec<Entry>>, FileError> {
        let single = match self.bundle.sources.as_slice() {
            [source] if !is_named(source) => Some(source),
            _ => None,
        };
        if let Some(source) = self.bundle.get(CONTEXT).or(single) {
            return self.each(source, entry).map(Some);
        }
        let old = self.bundle.get(OLD_CONTEXT).and_then(old_context);
        Ok(old.map(|context| old_messages(&context)))
    }

    /// Reads the Markdown archive, if no other file has the archived messages.
    ///
    /// Its end may repeat the start of the window, because chibi archives before it knows whether it can compact.
    fn markdown(&mut self, window: &[Entry]) -> Result<Vec<Entry>, FileError> {
        let Some(source) = self.bundle.get(MARKDOWN) else {
            return Ok(Vec::new());
        };
        let bytes = source.bytes()?;
        let mut entries = markdown::entries(&String::from_utf8_lossy(&bytes));
        let texts: Vec<_> = window.iter().filter(|entry| entry.kind == Kind::Text).collect();
        entries.truncate(entries.len() - count_repeated(&entries, &texts));
        Ok(entries)
    }

    fn created(&self) -> Option<Timestamp> {
        let meta = self.bundle.get(META).and_then(|source| source.bytes().ok());
        let meta = meta.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        let old = || self.bundle.get(OLD_CONTEXT).and_then(old_context);
        let second = meta.or_else(old)?.get("created_at")?.as_i64()?;
        Timestamp::from_unix(second)
    }

    /// Adds the lines of the debug files, and returns the cost that they state.
    fn add_debug_lines(&mut self, entries: &mut Vec<Entry>) -> Result<Option<f64>, FileError> {
        let mut lines = Vec::new();
        for file in DebugFile::ALL {
            if let Some(source) = self.bundle.get(file.name()) {
                lines.extend(self.each(source, |object| file.check(object))?);
            }
        }
        Ok(responses::add(entries, lines))
    }

    /// Reads all records of a file. Those that `convert` rejects become problems.
    fn each<T>(
        &mut self,
        source: &Source,
        convert: impl Fn(Object) -> Result<T, EntryError>,
    ) -> Result<Vec<T>, FileError> {
        records::records(source, &mut self.problems, convert)
    }
}

/// Counts how many of the last entries equal the first of `window`, in one pass (Knuth-Morris-Pratt).
fn count_repeated(entries: &[Entry], window: &[&Entry]) -> usize {
    let is_same = |a: &Entry, b: &Entry| a.role == b.role && a.content == b.content;
    if window.is_empty() {
        return 0;
    }
    // For each prefix of the window, the length of its longest proper prefix that is also its suffix.
    let mut borders = vec![0; window.len()];
    let next = |borders: &[usize], mut matched: usize, entry: &Entry| {
        while matched > 0 && (matched == window.len() || !is_same(entry, window[matched])) {
            matched = borders[matched - 1];
        }
        matched + usize::from(is_same(entry, window[matched]))
    };
    for at in 1..window.len() {
        borders[at] = next(&borders, borders[at - 1], window[at]);
    }
    entries.iter().fold(0, |matched, entry| next(&borders, matched, entry))
}

fn entry(object: Object) -> Result<Entry, EntryError> {
    Line::from_object(object).map(entry_of)
}

/// Decodes the messages of the first releases: id, role and text.
fn old_messages(context: &Value) -> Vec<Entry> {
    let messages = context["messages"].as_array().into_iter().flatten();
    let text =
        |message: &Value, field: &str| message[field].as_str().unwrap_or_default().to_owned();
    messages
        .map(|message| {
            let role = Role::from(text(message, "role"));
            let mut entry = Entry::new(role, Kind::Text, text(message, "content"));
            match text(message, "id").parse() {
                Ok(id) => entry.entry_id = id,
                Err(_) => {
                    let id = text(message, "id");
                    native_mut(&mut entry).insert("id".to_owned(), id.into());
                }
            }
            entry
        })
        .collect()
}
