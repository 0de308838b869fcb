//! A context that Steno writes: appends, compacts and archives messages. A crash loses no message.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;
use uuid::Uuid;

use super::convert::line_of;
use super::debug::DebugFile;
use super::find::{CONTEXT, META};
use super::inbox::{self, INBOX, Message};
use super::line::Line;
use super::lock;
use super::name::{ContextName, ContextNameError};
use super::records;
use crate::durable::{
    FileError, OnPath, append_lines, create_private_dir, private_options, write_atomic,
};
use crate::entry::Entry;
use crate::json::{Style, Value};
use crate::problem::Problem;
use crate::timestamp::{Clock, Timestamp};
use steno_vault::Source;

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
pub struct Context {
    dir: PathBuf,
    name: ContextName,
    clock: Clock,
}

impl Context {
    /// Opens the context in the folder `dir`, and creates the folder if it is missing.
    pub fn open(dir: &Path, clock: Clock) -> Result<Self, ContextError> {
        let name = dir.file_name().unwrap_or_default().to_string_lossy().parse()?;
        let context = Self { dir: dir.to_owned(), name, clock };
        if !dir.exists() {
            create_private_dir(dir)?;
            write_atomic(&context.file(META), meta(context.second()).as_bytes())?;
        }
        Ok(context)
    }

    /// The context's name.
    pub fn name(&self) -> &ContextName {
        &self.name
    }

    /// Reads the active conversation, and returns lines that could not be parsed as problems.
    pub fn lines(&self) -> Result<(Vec<Line>, Vec<Problem>), FileError> {
        lines(&self.file(CONTEXT))
    }

    /// Appends an entry durably, and returns it as written.
    ///
    /// An entry without an id or time gets one. A partially written last line stays a bad line of its own.
    pub fn append(&self, mut entry: Entry) -> Result<Entry, ContextError> {
        let _held = lock::take(&self.dir, &self.clock)?;
        if entry.entry_id.is_nil() {
            entry.entry_id = Uuid::new_v4();
        }
        entry.created_at = entry.created_at.or_else(|| self.whole_second());
        let line = line_of(&entry, self.name.as_str(), self.second());
        append_lines(&self.file(CONTEXT), line.print().as_bytes())?;
        Ok(entry)
    }

    /// Appends a prompt with the messages of the inbox prepended, and clears the inbox when both are on disk.
    pub fn prompt(&self, mut entry: Entry) -> Result<Entry, ContextError> {
        self.take_inbox(|messages| {
            entry.content = inbox::inject(messages, &entry.content);
            self.append(entry)
        })
    }

    /// Adds a message to this context's inbox.
    pub fn push(&self, from: &str, content: &str) -> Result<Message, FileError> {
        let message = Message {
            id: Uuid::new_v4().hyphenated().to_string(),
            timestamp: self.second().into(),
            from: from.to_owned(),
            to: self.name.as_str().to_owned(),
            content: content.to_owned(),
        };
        let _held = self.lock_inbox()?;
        append_lines(&self.file(INBOX), message.print().as_bytes())?;
        Ok(message)
    }

    /// Reads the messages in the inbox without removing them.
    pub fn waiting(&self) -> Result<Vec<Message>, FileError> {
        let lines = split_lines(&self.file(INBOX))?;
        Ok(lines.iter().filter_map(|line| message(line)).collect())
    }

    /// Passes the messages of the inbox to `record`, and removes them if it succeeds.
    ///
    /// After a crash the messages are still in the inbox. Lines that are not messages, and messages that arrive
    /// meanwhile, stay.
    pub fn take_inbox<T>(
        &self,
        record: impl FnOnce(&[Message]) -> Result<T, ContextError>,
    ) -> Result<T, ContextError> {
        // Held until the messages are removed, so that no other process takes them too. Adding a message does not
        // wait for it.
        let _taking = lock_file(&self.file(".inbox.take"))?;
        let waiting = {
            let _held = self.lock_inbox()?;
            self.inbox_lines()?
        };
        let (mut taken, messages): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .filter_map(|bytes| message(&bytes).map(|message| (bytes, message)))
            .unzip();
        let recorded = record(&messages)?;
        if taken.is_empty() {
            return Ok(recorded);
        }
        let _held = self.lock_inbox()?;
        let mut left = Vec::new();
        for line in self.inbox_lines()? {
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
        write_atomic(&self.file(INBOX), &left)?;
        Ok(recorded)
    }

    /// Appends a request to the model, or the metadata of its response, to a debug file.
    pub fn log_debug(&self, file: DebugFile, body: &Value) -> Result<(), FileError> {
        append_lines(&self.file(file.name()), file.line(body, self.second()).as_bytes())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn second(&self) -> i64 {
        self.clock.now().unix_seconds()
    }

    /// The current time in whole seconds, which is what a line can store.
    fn whole_second(&self) -> Option<Timestamp> {
        Timestamp::from_unix(self.clock.now().unix_seconds())
    }

    fn inbox_lines(&self) -> Result<Vec<Vec<u8>>, FileError> {
        split_lines(&self.file(INBOX))
    }

    fn lock_inbox(&self) -> Result<fs::File, FileError> {
        lock_file(&self.file(".inbox.lock"))
    }
}

fn lock_file(path: &Path) -> Result<fs::File, FileError> {
    let file = private_options().create(true).append(true).open(path).on("open", path)?;
    file.lock().on("lock", path)?;
    Ok(file)
}

/// Reads the lines of a `context.jsonl`, and returns those that could not be parsed as problems. A missing file is an
/// empty one.
pub fn lines(path: &Path) -> Result<(Vec<Line>, Vec<Problem>), FileError> {
    let mut problems = Vec::new();
    let source = Source::on_disk(CONTEXT, path);
    match records::records(&source, &mut problems, Line::from_object) {
        Err(error) if error.is_missing() => Ok((Vec::new(), problems)),
        lines => Ok((lines?, problems)),
    }
}

/// Renders `context_meta.json` as chibi does.
pub(super) fn meta(second: i64) -> String {
    Style::PRETTY.print(&json!({ "created_at": second }))
}

fn message(bytes: &[u8]) -> Option<Message> {
    Message::from_object(records::parse(bytes).ok()?).ok()
}

/// Reads the non-blank lines of a file; none if it is missing.
fn split_lines(path: &Path) -> Result<Vec<Vec<u8>>, FileError> {
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
