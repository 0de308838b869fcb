//! A context that Steno writes: appends, compacts and archives messages. A crash loses no message.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::json;
use uuid::Uuid;

use super::context_files::{CONTEXT_FILE, META_FILE};
use super::context_line::ContextLine;
use super::context_name::{ContextName, ContextNameError};
use super::debug_file::ChibiDebugFile;
use super::inbox::{self, INBOX_FILE, InboxMessage};
use super::line_conversion::line_from_entry;
use super::{context_lock, records};
use steno_model::durable::{
    FileError, OnPath, append_lines, create_private_dir, private_options, write_atomic,
};
use steno_model::entry::Entry;
use steno_model::json::{JsonStyle, Value};
use steno_model::problem::Problem;
use steno_model::timestamp::{Clock, Timestamp};
use steno_vault::SessionFile;

mod compaction;

/// Why a context could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The folder's name is not a valid context name.
    #[error(transparent)]
    Name(#[from] ContextNameError),
    /// Another process is writing.
    #[error("context is locked by another process: {0}")]
    Locked(PathBuf),
}

/// One context's folder.
#[derive(Debug)]
pub struct ChibiContext {
    dir: PathBuf,
    name: ContextName,
    clock: Clock,
}

impl ChibiContext {
    /// Opens the context in the folder `dir`, and creates the folder if it is missing.
    pub fn open(dir: &Path, clock: Clock) -> Result<Self, ContextError> {
        let name = dir.file_name().unwrap_or_default().to_string_lossy().parse()?;
        let context = Self { dir: dir.to_owned(), name, clock };
        if !dir.exists() {
            create_private_dir(dir)?;
            write_atomic(
                &context.file_path(META_FILE),
                render_meta(context.now_seconds()).as_bytes(),
            )?;
        }
        Ok(context)
    }

    /// The context's name.
    pub fn name(&self) -> &ContextName {
        &self.name
    }

    /// Reads the active conversation, and returns lines that could not be parsed as problems.
    pub fn read_lines(&self) -> Result<(Vec<ContextLine>, Vec<Problem>), FileError> {
        read_context_lines(&self.file_path(CONTEXT_FILE))
    }

    /// Appends an entry durably, and returns it as written.
    ///
    /// An entry without an id or time gets one. A partially written last line stays a bad line of its own.
    pub fn append(&self, mut entry: Entry) -> Result<Entry, ContextError> {
        let _held = context_lock::lock_context(&self.dir, &self.clock)?;
        if entry.entry_id.is_nil() {
            entry.entry_id = Uuid::new_v4();
        }
        entry.created_at = entry.created_at.or_else(|| self.now_timestamp());
        let line = line_from_entry(&entry, self.name.as_str(), self.now_seconds());
        append_lines(&self.file_path(CONTEXT_FILE), line.to_line().as_bytes())?;
        Ok(entry)
    }

    /// Appends a prompt with the messages of the inbox prepended, and clears the inbox when both are on disk.
    pub fn append_prompt(&self, mut entry: Entry) -> Result<Entry, ContextError> {
        self.take_inbox(|messages| {
            entry.content = inbox::prepend_messages(messages, &entry.content);
            self.append(entry)
        })
    }

    /// Adds a message to this context's inbox.
    pub fn push_message(&self, from: &str, content: &str) -> Result<InboxMessage, FileError> {
        let message = InboxMessage {
            id: Uuid::new_v4().hyphenated().to_string(),
            timestamp: self.now_seconds().into(),
            from: from.to_owned(),
            to: self.name.as_str().to_owned(),
            content: content.to_owned(),
        };
        let _held = self.lock_inbox()?;
        append_lines(&self.file_path(INBOX_FILE), message.to_line().as_bytes())?;
        Ok(message)
    }

    /// Reads the messages in the inbox without removing them.
    pub fn waiting_messages(&self) -> Result<Vec<InboxMessage>, FileError> {
        let lines = read_nonblank_lines(&self.file_path(INBOX_FILE))?;
        Ok(lines.iter().filter_map(|line| parse_message(line)).collect())
    }

    /// Passes the messages of the inbox to `record`, and removes them if it succeeds.
    ///
    /// After a crash the messages are still in the inbox. Lines that are not messages, and messages that arrive
    /// meanwhile, stay.
    pub fn take_inbox<T>(
        &self,
        record: impl FnOnce(&[InboxMessage]) -> Result<T, ContextError>,
    ) -> Result<T, ContextError> {
        // Held until the messages are removed, so that no other process takes them too. Adding a message does not
        // wait for it.
        let _taking = lock_file(&self.file_path(".inbox.take"))?;
        let waiting = {
            let _held = self.lock_inbox()?;
            self.read_inbox_lines()?
        };
        let (mut taken, messages): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .filter_map(|bytes| parse_message(&bytes).map(|message| (bytes, message)))
            .unzip();
        let recorded = record(&messages)?;
        if taken.is_empty() {
            return Ok(recorded);
        }
        let _held = self.lock_inbox()?;
        let mut left = Vec::new();
        for line in self.read_inbox_lines()? {
            match taken.iter().position(|done| *done == line) {
                Some(at) => {
                    taken.swap_remove(at);
                }
                None => {
                    left.extend_from_slice(&line);
                    left.push(b'\n');
                }
            }
        }
        write_atomic(&self.file_path(INBOX_FILE), &left)?;
        Ok(recorded)
    }

    /// Appends a request to the model, or the metadata of its response, to a debug file.
    pub fn log_debug(&self, file: ChibiDebugFile, body: &Value) -> Result<(), FileError> {
        append_lines(
            &self.file_path(file.file_name()),
            file.render_line(body, self.now_seconds()).as_bytes(),
        )
    }

    fn file_path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn now_seconds(&self) -> i64 {
        self.clock.now().unix_seconds()
    }

    /// The current time in whole seconds, which is what a line can store.
    fn now_timestamp(&self) -> Option<Timestamp> {
        Timestamp::from_unix(self.clock.now().unix_seconds())
    }

    fn read_inbox_lines(&self) -> Result<Vec<Vec<u8>>, FileError> {
        read_nonblank_lines(&self.file_path(INBOX_FILE))
    }

    fn lock_inbox(&self) -> Result<fs::File, FileError> {
        lock_file(&self.file_path(".inbox.lock"))
    }
}

fn lock_file(path: &Path) -> Result<fs::File, FileError> {
    let file = private_options().create(true).append(true).open(path).on("open", path)?;
    file.lock().on("lock", path)?;
    Ok(file)
}

/// Reads the lines of a `context.jsonl`, and returns those that could not be parsed as problems. A missing file is an
/// empty one.
pub fn read_context_lines(path: &Path) -> Result<(Vec<ContextLine>, Vec<Problem>), FileError> {
    let mut problems = Vec::new();
    let source = SessionFile::on_disk(CONTEXT_FILE, path);
    match records::read_records(&source, &mut problems, ContextLine::from_object) {
        Err(error) if error.is_missing() => Ok((Vec::new(), problems)),
        lines => Ok((lines?, problems)),
    }
}

/// Renders `context_meta.json` as chibi does.
pub(super) fn render_meta(second: i64) -> String {
    JsonStyle::PRETTY.print(&json!({ "created_at": second }))
}

fn parse_message(bytes: &[u8]) -> Option<InboxMessage> {
    InboxMessage::from_object(records::parse_record(bytes).ok()?).ok()
}

/// Reads the non-blank lines of a file; none if it is missing.
fn read_nonblank_lines(path: &Path) -> Result<Vec<Vec<u8>>, FileError> {
    let bytes = read_or_empty(path)?;
    let lines = bytes.split(|byte| *byte == b'\n');
    let filled = lines.filter(|line| !line.trim_ascii().is_empty());
    Ok(filled.map(<[u8]>::to_vec).collect())
}

fn read_or_empty(path: &Path) -> Result<Vec<u8>, FileError> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.on("read", path),
    }
}

#[cfg(test)]
mod tests;
