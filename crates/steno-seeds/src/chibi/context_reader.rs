//! Reads one context as one session, from the files of any release of chibi.
//!
//! The log comes first (`transcript.jsonl`, partitions, the active partition, the archive), then the window in
//! `context.jsonl` for entries that the log lacks: some releases wrote entries to only one of them.

use std::collections::HashSet;

use super::context_files::{
    ACTIVE_FILE, ARCHIVE_FILE, CONTEXT_FILE, LOG_FILE, MANIFEST_FILE, MARKDOWN_FILE, META_FILE,
    OLD_CONTEXT_FILE, PARTITIONS_FOLDER, context_name, has_chibi_name, read_old_context,
};
use super::context_line::ContextLine;
use super::debug_file::ChibiDebugFile;
use super::line_conversion::{chibi_fields_mut, entry_from_line, unique_line_id};
use super::{AGENT_NAME, READER, inbox, markdown, merge, partition, records, responses};
use steno_agents::decoding::entry_emitter::EntryEmitter;
use steno_agents::reader::{self, ItemSink};
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryError, EntryKind, Role};
use steno_model::json::{Object, Value};
use steno_model::problem::Problem;
use steno_model::session::{Session, SessionId, Transcript};
use steno_model::timestamp::Timestamp;
use steno_vault::{FormatError, SessionBundle, SessionFile};

/// Reads one context.
pub fn read_context(bundle: &SessionBundle) -> Result<Transcript, FormatError> {
    reader::read_transcript(&READER, bundle)
}

pub(super) fn emit_context(
    bundle: &SessionBundle,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let name = context_name(bundle);
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, &name), AGENT_NAME);
    session.native_id = Some(name.clone());
    let mut reading = ContextReader { bundle, problems: Vec::new() };
    let mut entries = reading.read_conversation()?;
    session.started = reading.read_creation_time();
    session.totals.cost = reading.add_debug_lines(&mut entries)?;
    if let Some(source) = bundle.file_named(inbox::INBOX_FILE) {
        entries.extend(reading.read_records(source, inbox::entry_from_inbox_line)?);
    }

    let mut output = EntryEmitter::new(AGENT_NAME, &name, emit);
    let mut ids = HashSet::new();
    for mut entry in entries {
        if !entry.entry_id.is_nil() && !ids.insert(entry.entry_id) {
            demote_duplicate_id(&mut entry);
        }
        output.emit_entry(entry);
    }
    reading.problems.into_iter().for_each(|problem| output.emit_problem(problem));
    Ok(session)
}

/// Clears an id that an earlier entry already has, and keeps it as the line's id.
fn demote_duplicate_id(entry: &mut Entry) {
    let id = std::mem::take(&mut entry.entry_id);
    chibi_fields_mut(entry).insert("id".to_owned(), id.hyphenated().to_string().into());
}

struct ContextReader<'a> {
    bundle: &'a SessionBundle,
    problems: Vec<Problem>,
}

impl<'a> ContextReader<'a> {
    fn read_conversation(&mut self) -> Result<Vec<Entry>, FileError> {
        let mut log: Vec<Entry> = Vec::new();
        let mut seen = HashSet::new();
        for source in self.log_files() {
            let entries = self.read_records(source, entry_from_record)?;
            let ids: Vec<_> = entries.iter().filter_map(unique_line_id).collect();
            let is_new =
                |entry: &Entry| !unique_line_id(entry).is_some_and(|id| seen.contains(&id));
            log.extend(entries.into_iter().filter(is_new));
            seen.extend(ids);
        }
        let window = self.read_window()?;
        if log.is_empty() {
            log = self.read_markdown(window.as_deref().unwrap_or_default())?;
        }
        Ok(match window {
            Some(window) => merge::merge_window(log, window),
            None => log,
        })
    }

    /// The append-only files, oldest first.
    fn log_files(&self) -> Vec<&'a SessionFile> {
        let sources = &self.bundle.files;
        let manifest =
            self.bundle.file_named(MANIFEST_FILE).and_then(|source| source.read_bytes().ok());
        let partitions =
            sources.iter().filter(|source| source.name().starts_with(PARTITIONS_FOLDER));
        // Earlier versions of the window, which chibi has rewritten since. Their lines are still part of the
        // conversation.
        let earlier =
            self.bundle.earlier_files.iter().filter(|source| source.name() == CONTEXT_FILE);
        let mut log: Vec<_> = earlier.chain(self.bundle.file_named(LOG_FILE)).collect();
        log.extend(partition::sort_partitions(partitions.collect(), manifest.as_deref()));
        log.extend(self.bundle.file_named(ACTIVE_FILE));
        log.extend(self.bundle.file_named(ARCHIVE_FILE));
        log
    }

    /// Reads the active conversation; `None` if the context has no file for it.
    fn read_window(&mut self) -> Result<Option<Vec<Entry>>, FileError> {
        let single = match self.bundle.files.as_slice() {
            [source] if !has_chibi_name(source) => Some(source),
            _ => None,
        };
        if let Some(source) = self.bundle.file_named(CONTEXT_FILE).or(single) {
            return self.read_records(source, entry_from_record).map(Some);
        }
        let old = self.bundle.file_named(OLD_CONTEXT_FILE).and_then(read_old_context);
        Ok(old.map(|context| entries_from_old_context(&context)))
    }

    /// Reads the Markdown archive, if no other file has the archived messages.
    ///
    /// Its end may repeat the start of the window, because chibi archives before it knows whether it can compact.
    fn read_markdown(&mut self, window: &[Entry]) -> Result<Vec<Entry>, FileError> {
        let Some(source) = self.bundle.file_named(MARKDOWN_FILE) else {
            return Ok(Vec::new());
        };
        let bytes = source.read_bytes()?;
        let mut entries = markdown::parse_markdown(&String::from_utf8_lossy(&bytes));
        let texts: Vec<_> = window.iter().filter(|entry| entry.kind == EntryKind::Text).collect();
        entries.truncate(entries.len() - count_repeated_entries(&entries, &texts));
        Ok(entries)
    }

    fn read_creation_time(&self) -> Option<Timestamp> {
        let meta = self.bundle.file_named(META_FILE).and_then(|source| source.read_bytes().ok());
        let meta = meta.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        let old = || self.bundle.file_named(OLD_CONTEXT_FILE).and_then(read_old_context);
        let second = meta.or_else(old)?.get("created_at")?.as_i64()?;
        Timestamp::from_unix(second)
    }

    /// Adds the lines of the debug files, and returns the cost that they state.
    fn add_debug_lines(&mut self, entries: &mut Vec<Entry>) -> Result<Option<f64>, FileError> {
        let mut lines = Vec::new();
        for file in ChibiDebugFile::ALL {
            if let Some(source) = self.bundle.file_named(file.file_name()) {
                lines.extend(self.read_records(source, |object| file.check_record(object))?);
            }
        }
        Ok(responses::attach_debug_lines(entries, lines))
    }

    /// Reads all records of a file. Those that `convert` rejects become problems.
    fn read_records<T>(
        &mut self,
        source: &SessionFile,
        convert: impl Fn(Object) -> Result<T, EntryError>,
    ) -> Result<Vec<T>, FileError> {
        records::read_records(source, &mut self.problems, convert)
    }
}

/// Counts how many of the last entries equal the first of `window`, in one pass (Knuth-Morris-Pratt).
fn count_repeated_entries(entries: &[Entry], window: &[&Entry]) -> usize {
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

fn entry_from_record(object: Object) -> Result<Entry, EntryError> {
    ContextLine::from_object(object).map(entry_from_line)
}

/// Decodes the messages of the first releases: id, role and text.
fn entries_from_old_context(context: &Value) -> Vec<Entry> {
    let messages = context["messages"].as_array().into_iter().flatten();
    let text =
        |message: &Value, field: &str| message[field].as_str().unwrap_or_default().to_owned();
    messages
        .map(|message| {
            let role = Role::from(text(message, "role"));
            let mut entry = Entry::new(role, EntryKind::Text, text(message, "content"));
            match text(message, "id").parse() {
                Ok(id) => entry.entry_id = id,
                Err(_) => {
                    let id = text(message, "id");
                    chibi_fields_mut(&mut entry).insert("id".to_owned(), id.into());
                }
            }
            entry
        })
        .collect()
}
