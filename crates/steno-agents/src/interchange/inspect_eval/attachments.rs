//! Restores texts that a sample stores as attachments into the messages that refer to them.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};

use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_walker::JsonWalker;
use steno_model::durable::FileError;
use steno_model::json::Value;
use steno_model::name_hash::{CompactNameMap, NameHasher, ShortNameHash};
use steno_model::problem::Problem;
use steno_vault::SessionFile;

/// The prefix of a reference to an attachment.
const ATTACHMENT_PREFIX: &str = "attachment://";

/// Limit for messages and attachments held in memory, in bytes.
const MAX_WAITING_BYTES: u64 = 8 << 20;

/// The attachments of a sample. Their texts stay in the file.
pub(super) struct SampleAttachments<'s> {
    source: &'s SessionFile,
    /// Length of each attachment, by its name.
    lengths: CompactNameMap<u64>,
    sums: NameHasher,
}

/// Messages with missing texts, and the messages after them.
#[derive(Default)]
pub(super) struct MessagesAwaitingText {
    messages: Vec<(usize, Value)>,
    missing_texts: HashSet<ShortNameHash>,
    size: u64,
}

impl MessagesAwaitingText {
    pub(super) fn has_missing_texts(&self) -> bool {
        !self.missing_texts.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.size > MAX_WAITING_BYTES
    }

    pub(super) fn push(&mut self, index: usize, message: Value, size: u64) {
        self.messages.push((index, message));
        self.size += size;
    }
}

impl<'s> SampleAttachments<'s> {
    /// The field of a sample that holds its attachments.
    pub(super) const FIELD: &'static str = "attachments";

    pub(super) fn new(source: &'s SessionFile) -> Self {
        Self { source, lengths: CompactNameMap::default(), sums: NameHasher::default() }
    }

    /// Notes the lengths of the attachments in the next value.
    pub(super) fn note_lengths(
        &mut self,
        walk: &mut JsonWalker<Box<dyn BufRead>>,
    ) -> io::Result<()> {
        walk.for_each_field(&mut |walk, name| {
            let range = walk.value_range()?;
            self.lengths.get_mut_or_insert(self.sums.hash_short(name), range.end - range.start);
            Ok(())
        })
    }

    /// Adds the attachments that `value` refers to.
    pub(super) fn note_missing(&self, value: &Value, waiting: &mut MessagesAwaitingText) {
        match value {
            Value::String(text) => {
                let name =
                    text.strip_prefix(ATTACHMENT_PREFIX).map(|name| self.sums.hash_short(name));
                if let Some(name) = name
                    && let Some(length) = self.lengths.get(name)
                    && waiting.missing_texts.insert(name)
                {
                    waiting.size += length;
                }
            }
            Value::Array(values) => {
                values.iter().for_each(|value| self.note_missing(value, waiting))
            }
            Value::Object(fields) => {
                fields.values().for_each(|value| self.note_missing(value, waiting));
            }
            _ => {}
        }
    }

    /// The waiting messages with their texts restored.
    pub(super) fn restore_texts(
        &self,
        mut waiting: MessagesAwaitingText,
        output: &mut EntryEmitter<'_>,
    ) -> Result<Vec<(usize, Value)>, FileError> {
        if waiting.has_missing_texts() {
            let texts = self.read_texts(&waiting.missing_texts, output)?;
            waiting.messages.iter_mut().for_each(|(_, message)| self.attach_texts(message, &texts));
        }
        Ok(waiting.messages)
    }

    fn read_texts(
        &self,
        missing: &HashSet<ShortNameHash>,
        output: &mut EntryEmitter<'_>,
    ) -> Result<HashMap<ShortNameHash, String>, FileError> {
        let mut texts = HashMap::new();
        let mut take = |walk: &mut JsonWalker<Box<dyn BufRead>>, name: &str| {
            let hash = self.sums.hash_short(name);
            if !missing.contains(&hash) {
                return walk.skip_value();
            }
            match walk.read_value::<Value>()? {
                Ok(Value::String(text)) => _ = texts.insert(hash, text),
                Ok(_) => {}
                Err(reason) => {
                    let reason = format!("attachment {name}: {reason}");
                    output.emit_problem(Problem::for_file(self.source.path(), reason));
                }
            }
            Ok(())
        };
        JsonWalker::rewalk_document(self.source, &mut |walk| {
            walk.for_each_field(&mut |walk, name| match name {
                Self::FIELD => walk.for_each_field(&mut take),
                _ => walk.skip_value(),
            })
        })?;
        Ok(texts)
    }

    fn attach_texts(&self, value: &mut Value, texts: &HashMap<ShortNameHash, String>) {
        match value {
            Value::String(text) => {
                let moved = text
                    .strip_prefix(ATTACHMENT_PREFIX)
                    .and_then(|name| texts.get(&self.sums.hash_short(name)));
                if let Some(moved) = moved {
                    moved.clone_into(text);
                }
            }
            Value::Array(values) => {
                values.iter_mut().for_each(|value| self.attach_texts(value, texts))
            }
            Value::Object(fields) => {
                fields.values_mut().for_each(|value| self.attach_texts(value, texts));
            }
            _ => {}
        }
    }
}
