//! Replays a chat's log to find the final order of messages and the last version of each.
//!
//! The log is read twice. The first pass notes only ids and record numbers; the second emits the messages. A message
//! that comes before its turn is buffered. If the buffer is full, the log is read once more.

mod window;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::num::NonZeroU32;

use self::window::Window;
use crate::agent::fields;
use crate::agent::head::Head;
use crate::agent::json_lines::each_object;
use crate::agent::listing::Listing;
use crate::agent::telling::Telling;
use crate::durable::FileError;
use crate::entry::{Entry, EntryError, Kind, Role};
use crate::json::{Object, Value};
use crate::problem::Problem;
use crate::sums::{Short, SumMap, Sums};
use steno_vault::Source;

/// The header fields to keep.
const STATED: [&str; 5] = ["sessionId", "summary", "projectHash", "kind", "directories"];

/// A record's number in the log, from 1. Each message of a list in one line has its own number.
type Number = NonZeroU32;

/// The state of the chat after the last line.
#[derive(Debug)]
pub(super) struct Plan {
    /// Metadata of the chat.
    pub(super) header: Object,
    /// One compaction each time a shorter list replaced all messages: the ids of the dropped messages.
    compactions: Vec<Vec<Short>>,
    /// The messages after the last compaction, in the order of their first versions.
    slots: Vec<Slot>,
    /// The messages since the last compaction, by id. Some may have been rewound.
    known: SumMap<Known>,
    /// For messages before the last compaction: the record of the last version with usage.
    counted: SumMap<Number>,
    hasher: Sums,
    next: Number,
}

#[derive(Debug)]
struct Slot {
    /// The records of the first and the last version.
    first: Number,
    last: Number,
}

#[derive(Debug)]
struct Known {
    first: Number,
    /// The record of the last version with usage.
    counted: Option<Number>,
}

/// One line of the log, as a change to the chat.
enum Step {
    Rewind(String),
    /// Appends a record, or replaces the one with its id.
    Put(Object),
    /// Merges fields into the header.
    Merge(Object),
}

impl Step {
    fn of(mut object: Object) -> Self {
        if let Some(target) = fields::text(&object, "$rewindTo") {
            return Step::Rewind(target.to_owned());
        }
        if fields::text(&object, "id").is_some() {
            return Step::Put(object);
        }
        match object.get_mut("$set").map(Value::take) {
            Some(Value::Object(fields)) => Step::Merge(fields),
            _ if fields::text(&object, "sessionId").is_some() => Step::Merge(object),
            _ => Step::Put(object),
        }
    }
}

impl Plan {
    /// Reads the log for the first time, and notes which records to emit.
    pub(super) fn of(source: &Source) -> Result<Self, FileError> {
        let mut plan = Self::new();
        each_record(source, |object, _| {
            if let Ok(object) = object {
                plan.apply(Step::of(object));
            }
        })?;
        Ok(plan)
    }

    fn new() -> Self {
        Self {
            header: Object::new(),
            compactions: Vec::new(),
            slots: Vec::new(),
            known: SumMap::default(),
            counted: SumMap::default(),
            hasher: Sums::default(),
            next: Number::MIN,
        }
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Rewind(target) => {
                let target = self.known.get(self.hasher.short(target.as_str()));
                match target.and_then(|target| position(&self.slots, target.first)) {
                    Some(at) => self.slots.truncate(at),
                    None => (self.slots, self.compactions) = (Vec::new(), Vec::new()),
                }
            }
            Step::Put(object) => {
                let number = self.number();
                self.put(&object, number, number);
            }
            Step::Merge(mut fields) => {
                if let Some(Value::Array(messages)) = fields.shift_remove("messages") {
                    self.replace(&messages);
                }
                fields.retain(|name, _| STATED.contains(&name.as_str()));
                self.header.extend(fields);
            }
        }
    }

    fn number(&mut self) -> Number {
        let number = self.next;
        self.next = number.saturating_add(1);
        number
    }

    fn id(&self, object: &Object) -> Option<Short> {
        fields::text(object, "id").map(|id| self.hasher.short(id))
    }

    /// Adds the record `first`, with the last version `last`.
    fn put(&mut self, object: &Object, first: Number, last: Number) {
        let counted = fields::object(object, "tokens").map(|_| last);
        let known = self.id(object).and_then(|id| self.known.put(id, Known { first, counted }));
        if let Some(known) = known {
            known.counted = counted.or(known.counted);
            if let Some(at) = position(&self.slots, known.first) {
                self.slots[at].last = last;
                return;
            }
            known.first = first;
        }
        self.slots.push(Slot { first, last });
    }

    /// Replaces all messages by a list.
    ///
    /// A resumed chat drops all messages and then writes them again without usage. That is no compaction, and the
    /// earlier versions of answers, which have usage, stay.
    fn replace(&mut self, messages: &[Value]) {
        let objects = messages.iter().filter_map(Value::as_object);
        let listed: HashSet<_> = objects.filter_map(|object| self.id(object)).collect();
        let mut dropped = Vec::new();
        for (id, known) in std::mem::take(&mut self.known).iter() {
            if position(&self.slots, known.first).is_some() {
                dropped.push(id);
            }
            if let Some(number) = known.counted
                && let Some(counted) = self.counted.put(id, number)
            {
                *counted = number;
            }
        }
        self.slots.clear();
        self.compactions.push(dropped);
        self.compactions.iter_mut().for_each(|dropped| dropped.retain(|id| !listed.contains(id)));
        self.compactions.retain(|dropped| !dropped.is_empty());
        for message in messages {
            let number = self.number();
            if let Some(object) = message.as_object() {
                let is_answer = fields::text(object, "type") != Some("user");
                let counted = self.id(object).filter(|_| is_answer).and_then(|id| self.counted(id));
                self.put(object, number, counted.unwrap_or(number));
            }
        }
    }

    fn counted(&self, id: Short) -> Option<Number> {
        let known = self.known.get(id).and_then(|known| known.counted);
        known.or_else(|| self.counted.get(id).copied())
    }

    /// Reads the log again and passes its messages to `emit` in their final order.
    pub(super) fn replay<'a>(
        self,
        source: &Source,
        emitter: &mut Telling<'a>,
        mut emit: impl FnMut(&mut Telling<'a>, Object),
    ) -> Result<(), FileError> {
        for _ in self.compactions {
            emitter.entry(Entry::new(Role::System, Kind::Compaction, ""));
        }
        drop((self.known, self.counted));
        let mut window = Window::of(self.slots.into_iter().map(|slot| slot.last).collect());
        let mut is_first = true;
        while is_first || window.has_moved() {
            let mut numbers = 1..;
            each_record(source, |object, line| {
                let records = match object {
                    Ok(object) => records_of(object),
                    Err(problem) if is_first => return emitter.problem(problem),
                    Err(_) => return,
                };
                for (record, number) in records.into_iter().zip(&mut numbers) {
                    match record {
                        Value::Object(record) => {
                            window.pass(number, record, &mut |record| emit(emitter, record))
                        }
                        _ if is_first => {
                            let reason = EntryError::NotAnObject;
                            emitter.problem(Problem::at(source.path(), line, reason));
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
fn position(slots: &[Slot], first: Number) -> Option<usize> {
    slots.binary_search_by_key(&first, |slot| slot.first).ok()
}

/// The records in a line, in the order of their numbers.
fn records_of(object: Object) -> Vec<Value> {
    match Step::of(object) {
        Step::Rewind(_) => Vec::new(),
        Step::Put(object) => vec![Value::Object(object)],
        Step::Merge(mut fields) => match fields.shift_remove("messages") {
            Some(Value::Array(messages)) => messages,
            _ => Vec::new(),
        },
    }
}

/// Whether a file holds a log, by its content. A file of a single line is recognized by its name.
fn is_log(source: &Source) -> Result<bool, FileError> {
    let is_log = Head::of(source)?.is_lines();
    Ok(is_log.unwrap_or_else(|| !source.name().ends_with(".json")))
}

/// Passes each line of a log to `take`. For a document, passes its metadata first, then each message.
fn each_record(
    source: &Source,
    mut take: impl FnMut(Result<Object, Problem>, u64),
) -> Result<(), FileError> {
    if is_log(source)? {
        return each_object(source, take);
    }
    let mut listing = match Listing::of(source, &["messages"])? {
        Ok(listing) => listing,
        Err(problem) => {
            take(Err(problem), 1);
            return Ok(());
        }
    };
    take(Ok(std::mem::take(&mut listing.fields)), 1);
    let mut number = 1;
    listing.each(|message| {
        number += 1;
        let bad = |why: &str| Problem::of(source.path(), format!("message {}: {why}", number - 1));
        let message = match message {
            Ok(Value::Object(message)) => Ok(message),
            Ok(_) => Err(bad("not a JSON object")),
            Err(reason) => Err(bad(&reason)),
        };
        take(message, number);
    })
}
