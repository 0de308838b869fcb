//! A context that is being written: messages appended, compacted, archived, without ever losing one.

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
    /// The file system said no.
    #[error(transparent)]
    File(#[from] FileError),
    /// The folder's name names no context.
    #[error(transparent)]
    Name(#[from] ContextNameError),
    /// Somebody else is writing.
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
    /// Opens the context whose folder is `dir`, and makes it if there is none.
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

    /// The active conversation, and what of it could not be read.
    pub fn lines(&self) -> Result<(Vec<Line>, Vec<Problem>), FileError> {
        lines(&self.file(CONTEXT))
    }

    /// Appends an entry and returns it as it was written, once it is on disk.
    ///
    /// An entry without id or time gets both here. A torn last line stays a bad line of its own.
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

    /// Appends a prompt with the waiting messages in front, and clears the inbox once both are on disk.
    pub fn prompt(&self, mut entry: Entry) -> Result<Entry, ContextError> {
        self.take_inbox(|messages| {
            entry.content = inbox::inject(messages, &entry.content);
            self.append(entry)
        })
    }

    /// Leaves a message for this context.
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

    /// The messages that wait for this context; nothing is taken.
    pub fn waiting(&self) -> Result<Vec<Message>, FileError> {
        let lines = split_lines(&self.file(INBOX))?;
        Ok(lines.iter().filter_map(|line| message(line)).collect())
    }

    /// Hands the waiting messages to `record`, and removes them once that has succeeded.
    ///
    /// A crash in between leaves them waiting. Lines that are no messages stay, and so do messages that arrive
    /// meanwhile.
    pub fn take_inbox<T>(
        &self,
        record: impl FnOnce(&[Message]) -> Result<T, ContextError>,
    ) -> Result<T, ContextError> {
        // Whoever takes messages holds this until they are cleared, so that nobody takes them twice; whoever leaves
        // one does not wait for it.
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

    /// Takes down a request to the model or what its response says about itself.
    pub fn log_debug(&self, file: DebugFile, body: &Value) -> Result<(), FileError> {
        append_lines(&self.file(file.name()), file.line(body, self.second()).as_bytes())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn second(&self) -> i64 {
        self.clock.now().unix_seconds()
    }

    /// Now, as exactly as a line can say it.
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

/// The conversation in a `context.jsonl`, and what of it could not be read; a missing file is an empty one.
pub fn lines(path: &Path) -> Result<(Vec<Line>, Vec<Problem>), FileError> {
    let mut problems = Vec::new();
    let source = Source::on_disk(CONTEXT, path);
    match records::records(&source, &mut problems, Line::from_object) {
        Err(error) if error.is_missing() => Ok((Vec::new(), problems)),
        lines => Ok((lines?, problems)),
    }
}

/// `context_meta.json`, as chibi writes it.
pub(super) fn meta(second: i64) -> String {
    Style::PRETTY.print(&json!({ "created_at": second }))
}

fn message(bytes: &[u8]) -> Option<Message> {
    Message::from_object(records::parse(bytes).ok()?).ok()
}

/// The lines of a file that may be missing, blank ones aside.
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
