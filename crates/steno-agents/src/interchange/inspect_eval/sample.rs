//! Reads one sample and restores texts that it stores as attachments.
//!
//! The file is scanned several times, so that only a few messages are in memory: the first scan reads all other
//! fields.

use std::io::{self, BufRead};

use serde::Deserialize;

use super::attachments::{MessagesAwaitingText, SampleAttachments};
use super::{EXTRA_FIELDS, message};
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::owned_text;
use crate::decoding::json_walker::{JsonWalker, malformed_error};
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryError, EntryKind, Role};
use steno_model::json::{Object, Value};
use steno_model::name_hash::{CompactNameMap, NameHasher, ShortNameHash};
use steno_model::problem::Problem;
use steno_model::timestamp::Timestamp;
use steno_vault::SessionFile;

/// Fields of a sample to parse, in addition to the extra fields.
const READ_FIELDS: [&str; 6] =
    ["uuid", "started_at", "completed_at", "error", "output", "model_usage"];

/// A sample with its messages still unread.
pub(super) struct EvalSample<'s> {
    source: &'s SessionFile,
    /// The parsed fields.
    pub(super) fields: Value,
    message_count: usize,
    /// Times of messages and tool results, by their ids.
    times: CompactNameMap<Timestamp>,
    attachments: SampleAttachments<'s>,
    sums: NameHasher,
}

impl<'s> EvalSample<'s> {
    /// Scans the sample in `source`. The inner error says why it is not a sample.
    pub(super) fn read(source: &'s SessionFile) -> Result<Result<Self, Problem>, FileError> {
        let mut stated = Object::new();
        let (mut messages, mut times, sums) = (0, CompactNameMap::default(), NameHasher::default());
        let mut attachments = SampleAttachments::new(source);
        let passed = JsonWalker::walk_document(source, &mut |walk| {
            walk.for_each_field(&mut |walk, name| match name {
                "messages" => walk.for_each_item(&mut |walk| {
                    messages += 1;
                    walk.skip_value()
                }),
                "events" => walk.for_each_item(&mut |walk| {
                    let time = walk
                        .read_value::<EvalEvent>()?
                        .ok()
                        .and_then(|event| event.message_time(&sums));
                    if let Some((id, time)) = time
                        && let Some(before) = times.get_mut_or_insert(id, time)
                    {
                        *before = time;
                    }
                    Ok(())
                }),
                SampleAttachments::FIELD => attachments.note_lengths(walk),
                _ if READ_FIELDS.contains(&name) || EXTRA_FIELDS.contains(&name) => {
                    stated.insert(name.to_owned(), walk.read_value()?.map_err(malformed_error)?);
                    Ok(())
                }
                _ => walk.skip_value(),
            })
        })?;
        let stated = Value::Object(stated);
        Ok(passed.map(|()| Self {
            source,
            fields: stated,
            message_count: messages,
            times,
            attachments,
            sums,
        }))
    }

    /// Emits the entries.
    pub(super) fn emit_entries(&self, output: &mut EntryEmitter<'_>) -> Result<(), FileError> {
        let mut emitter = SampleEmitter { sample: self, output, answered: false };
        let mut taken = 0;
        while taken < self.message_count {
            let waiting = self.emit_until_missing_text(&mut taken, &mut emitter)?;
            for (index, message) in self.attachments.restore_texts(waiting, emitter.output)? {
                emitter.emit_message(index, Ok(message));
            }
        }
        if let Some(reason) = owned_text(&self.fields["error"]["message"]) {
            output.emit_entry(Entry::new(Role::System, EntryKind::Error, reason));
        }
        Ok(())
    }

    /// Emits the messages after the first `taken` ones, up to the first with a missing text. Returns that message and
    /// as many of the following ones as fit in memory.
    fn emit_until_missing_text(
        &self,
        taken: &mut usize,
        emitter: &mut SampleEmitter<'_, '_, '_>,
    ) -> Result<MessagesAwaitingText, FileError> {
        let (mut waiting, mut index) = (MessagesAwaitingText::default(), 0);
        let mut take = |walk: &mut JsonWalker<Box<dyn BufRead>>| -> io::Result<()> {
            let at = index;
            index += 1;
            if at < *taken || waiting.is_full() {
                return walk.skip_value();
            }
            *taken = index;
            let start = walk.next_start()?;
            let message = walk.read_value::<Value>()?;
            let size = walk.next_start()? - start;
            if let Ok(message) = &message {
                self.attachments.note_missing(message, &mut waiting);
            }
            match message {
                Ok(message) if waiting.has_missing_texts() => waiting.push(at, message, size),
                message => emitter.emit_message(at, message),
            }
            Ok(())
        };
        JsonWalker::rewalk_document(self.source, &mut |walk| {
            walk.for_each_field(&mut |walk, name| match name {
                "messages" => walk.for_each_item(&mut take),
                _ => walk.skip_value(),
            })
        })?;
        Ok(waiting)
    }
}

/// The fields of an event that give a time.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct EvalEvent {
    event: Value,
    id: Value,
    output: Value,
    completed: Value,
    timestamp: Value,
}

impl EvalEvent {
    /// The message or tool call of the event, and its time.
    fn message_time(&self, sums: &NameHasher) -> Option<(ShortNameHash, Timestamp)> {
        let id = match self.event.as_str()? {
            "model" => &self.output["choices"][0]["message"]["id"],
            "tool" => &self.id,
            _ => return None,
        };
        let times = [&self.completed, &self.timestamp];
        let at = times.iter().find_map(|time| time.as_str()?.parse().ok())?;
        Some((sums.hash_short(id.as_str()?), at))
    }
}

/// Emits the entries of a sample.
struct SampleEmitter<'t, 's, 'e> {
    sample: &'t EvalSample<'s>,
    output: &'t mut EntryEmitter<'e>,
    answered: bool,
}

impl SampleEmitter<'_, '_, '_> {
    fn emit_message(&mut self, index: usize, message: Result<Value, String>) {
        let not_an_object = || EntryError::NotAnObject.to_string();
        let message = match message.and_then(|message| match message.is_object() {
            true => Ok(message),
            false => Err(not_an_object()),
        }) {
            Ok(message) => message,
            Err(reason) => {
                let reason = format!("message {}: {reason}", index + 1);
                return self
                    .output
                    .emit_problem(Problem::for_file(self.sample.source.path(), reason));
            }
        };
        let EvalSample { times, sums, .. } = self.sample;
        let ids = [&message["id"], &message["tool_call_id"]];
        let at = ids.iter().find_map(|id| times.get(sums.hash_short(id.as_str()?))).copied();
        for mut entry in message::message_entries(&message, self.answered) {
            entry.created_at = at;
            entry.message_id =
                Some(owned_text(&message["id"]).unwrap_or(format!("message-{index}")));
            self.output.emit_entry(entry);
        }
        self.answered |= message["role"] == "assistant";
    }
}
