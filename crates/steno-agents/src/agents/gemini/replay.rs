//! Replays a chat's log to find the final order of messages and the last version of each.
//!
//! The log is read twice. The first pass notes only ids and record numbers; the second emits the messages. A message
//! that comes before its turn is buffered. If the buffer is full, the log is read once more.

mod window;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::num::NonZeroU32;

use self::window::ReorderWindow;
use crate::decoding::file_head::FileHead;
use crate::decoding::json_fields;
use crate::decoding::json_lines::for_each_object;
use crate::decoding::record_list::RecordList;
use crate::decoding::session_emitter::SessionEmitter;
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryError, EntryKind, Role};
use steno_model::json::{Object, Value};
use steno_model::name_hash::{CompactNameMap, NameHasher, ShortNameHash};
use steno_model::problem::Problem;
use steno_vault::SessionFile;

/// The header fields to keep.
const HEADER_FIELDS: [&str; 5] = ["sessionId", "summary", "projectHash", "kind", "directories"];

/// A record's number in the log, from 1. Each message of a list in one line has its own number.
type RecordNumber = NonZeroU32;

/// The state of the chat after the last line.
#[derive(Debug)]
pub(super) struct GeminiReplayPlan {
    /// Metadata of the chat.
    pub(super) header: Object,
    /// One compaction each time a shorter list replaced all messages: the ids of the dropped messages.
    compactions: Vec<Vec<ShortNameHash>>,
    /// The messages after the last compaction, in the order of their first versions.
    slots: Vec<GeminiReplaySlot>,
    /// The messages since the last compaction, by id. Some may have been rewound.
    known: CompactNameMap<GeminiKnownMessage>,
    /// For messages before the last compaction: the record of the last version with usage.
    counted_before: CompactNameMap<RecordNumber>,
    hasher: NameHasher,
    next: RecordNumber,
}

#[derive(Debug)]
struct GeminiReplaySlot {
    /// The records of the first and the last version.
    first: RecordNumber,
    last: RecordNumber,
}

#[derive(Debug)]
struct GeminiKnownMessage {
    first: RecordNumber,
    /// The record of the last version with usage.
    counted: Option<RecordNumber>,
}

/// One line of the log, as a change to the chat.
enum GeminiLogStep {
    Rewind(String),
    /// Appends a record, or replaces the one with its id.
    Put(Object),
    /// Merges fields into the header.
    Merge(Object),
}

impl GeminiLogStep {
    fn from_object(mut object: Object) -> Self {
        if let Some(target) = json_fields::text_field(&object, "$rewindTo") {
            return GeminiLogStep::Rewind(target.to_owned());
        }
        if json_fields::text_field(&object, "id").is_some() {
            return GeminiLogStep::Put(object);
        }
        match object.get_mut("$set").map(Value::take) {
            Some(Value::Object(fields)) => GeminiLogStep::Merge(fields),
            _ if json_fields::text_field(&object, "sessionId").is_some() => {
                GeminiLogStep::Merge(object)
            }
            _ => GeminiLogStep::Put(object),
        }
    }
}

impl GeminiReplayPlan {
    /// Reads the log for the first time, and notes which records to emit.
    pub(super) fn from_log(source: &SessionFile) -> Result<Self, FileError> {
        let mut plan = Self::new();
        for_each_record(source, |object, _| {
            if let Ok(object) = object {
                plan.apply_step(GeminiLogStep::from_object(object));
            }
        })?;
        Ok(plan)
    }

    fn new() -> Self {
        Self {
            header: Object::new(),
            compactions: Vec::new(),
            slots: Vec::new(),
            known: CompactNameMap::default(),
            counted_before: CompactNameMap::default(),
            hasher: NameHasher::default(),
            next: RecordNumber::MIN,
        }
    }

    fn apply_step(&mut self, step: GeminiLogStep) {
        match step {
            GeminiLogStep::Rewind(target) => {
                let target = self.known.get(self.hasher.hash_short(target.as_str()));
                match target.and_then(|target| slot_position(&self.slots, target.first)) {
                    Some(at) => self.slots.truncate(at),
                    None => (self.slots, self.compactions) = (Vec::new(), Vec::new()),
                }
            }
            GeminiLogStep::Put(object) => {
                let number = self.next_number();
                self.put_record(&object, number, number);
            }
            GeminiLogStep::Merge(mut fields) => {
                if let Some(Value::Array(messages)) = fields.shift_remove("messages") {
                    self.replace_messages(&messages);
                }
                fields.retain(|name, _| HEADER_FIELDS.contains(&name.as_str()));
                self.header.extend(fields);
            }
        }
    }

    fn next_number(&mut self) -> RecordNumber {
        let number = self.next;
        self.next = number.saturating_add(1);
        number
    }

    fn hash_id(&self, object: &Object) -> Option<ShortNameHash> {
        json_fields::text_field(object, "id").map(|id| self.hasher.hash_short(id))
    }

    /// Adds the record `first`, with the last version `last`.
    fn put_record(&mut self, object: &Object, first: RecordNumber, last: RecordNumber) {
        let counted = json_fields::object_field(object, "tokens").map(|_| last);
        let known = self
            .hash_id(object)
            .and_then(|id| self.known.get_mut_or_insert(id, GeminiKnownMessage { first, counted }));
        if let Some(known) = known {
            known.counted = counted.or(known.counted);
            if let Some(at) = slot_position(&self.slots, known.first) {
                self.slots[at].last = last;
                return;
            }
            known.first = first;
        }
        self.slots.push(GeminiReplaySlot { first, last });
    }

    /// Replaces all messages by a list.
    ///
    /// A resumed chat drops all messages and then writes them again without usage. That is no compaction, and the
    /// earlier versions of answers, which have usage, stay.
    fn replace_messages(&mut self, messages: &[Value]) {
        let objects = messages.iter().filter_map(Value::as_object);
        let listed: HashSet<_> = objects.filter_map(|object| self.hash_id(object)).collect();
        let mut dropped = Vec::new();
        for (id, known) in std::mem::take(&mut self.known).iter() {
            if slot_position(&self.slots, known.first).is_some() {
                dropped.push(id);
            }
            if let Some(number) = known.counted
                && let Some(counted) = self.counted_before.get_mut_or_insert(id, number)
            {
                *counted = number;
            }
        }
        self.slots.clear();
        self.compactions.push(dropped);
        self.compactions.iter_mut().for_each(|dropped| dropped.retain(|id| !listed.contains(id)));
        self.compactions.retain(|dropped| !dropped.is_empty());
        for message in messages {
            let number = self.next_number();
            if let Some(object) = message.as_object() {
                let is_answer = json_fields::text_field(object, "type") != Some("user");
                let counted =
                    self.hash_id(object).filter(|_| is_answer).and_then(|id| self.last_counted(id));
                self.put_record(object, number, counted.unwrap_or(number));
            }
        }
    }

    fn last_counted(&self, id: ShortNameHash) -> Option<RecordNumber> {
        let known = self.known.get(id).and_then(|known| known.counted);
        known.or_else(|| self.counted_before.get(id).copied())
    }

    /// Reads the log again and passes its messages to `emit` in their final order.
    pub(super) fn replay_messages<'a>(
        self,
        source: &SessionFile,
        emitter: &mut SessionEmitter<'a>,
        mut emit: impl FnMut(&mut SessionEmitter<'a>, Object),
    ) -> Result<(), FileError> {
        for _ in self.compactions {
            emitter.emit_entry(Entry::new(Role::System, EntryKind::Compaction, ""));
        }
        drop((self.known, self.counted_before));
        let mut window = ReorderWindow::new(self.slots.into_iter().map(|slot| slot.last).collect());
        let mut is_first = true;
        while is_first || window.has_moved() {
            let mut numbers = 1..;
            for_each_record(source, |object, line| {
                let records = match object {
                    Ok(object) => records_in_line(object),
                    Err(problem) if is_first => return emitter.emit_problem(problem),
                    Err(_) => return,
                };
                for (record, number) in records.into_iter().zip(&mut numbers) {
                    match record {
                        Value::Object(record) => {
                            window.push_record(number, record, &mut |record| emit(emitter, record))
                        }
                        _ if is_first => {
                            let reason = EntryError::NotAnObject;
                            emitter.emit_problem(Problem::at_line(source.path(), line, reason));
                        }
                        _ => {}
                    }
                }
            })?;
            is_first = false;
        }
        Ok(())
    }
}

/// The position of the slot with this first record. None if it was removed.
fn slot_position(slots: &[GeminiReplaySlot], first: RecordNumber) -> Option<usize> {
    slots.binary_search_by_key(&first, |slot| slot.first).ok()
}

/// The records in a line, in the order of their numbers.
fn records_in_line(object: Object) -> Vec<Value> {
    match GeminiLogStep::from_object(object) {
        GeminiLogStep::Rewind(_) => Vec::new(),
        GeminiLogStep::Put(object) => vec![Value::Object(object)],
        GeminiLogStep::Merge(mut fields) => match fields.shift_remove("messages") {
            Some(Value::Array(messages)) => messages,
            _ => Vec::new(),
        },
    }
}

/// Whether a file holds a log, by its content. A file of a single line is recognized by its name.
fn is_log(source: &SessionFile) -> Result<bool, FileError> {
    let is_log = FileHead::read(source)?.has_lines();
    Ok(is_log.unwrap_or_else(|| !source.name().ends_with(".json")))
}

/// Passes each line of a log to `take`. For a document, passes its metadata first, then each message.
fn for_each_record(
    source: &SessionFile,
    mut take: impl FnMut(Result<Object, Problem>, u64),
) -> Result<(), FileError> {
    if is_log(source)? {
        return for_each_object(source, take);
    }
    let mut listing = match RecordList::open(source, &["messages"])? {
        Ok(listing) => listing,
        Err(problem) => {
            take(Err(problem), 1);
            return Ok(());
        }
    };
    take(Ok(std::mem::take(&mut listing.fields)), 1);
    let mut number = 1;
    listing.for_each_record(|message| {
        number += 1;
        let bad =
            |why: &str| Problem::for_file(source.path(), format!("message {}: {why}", number - 1));
        let message = match message {
            Ok(Value::Object(message)) => Ok(message),
            Ok(_) => Err(bad("not a JSON object")),
            Err(reason) => Err(bad(&reason)),
        };
        take(message, number);
    })
}
