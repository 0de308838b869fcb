//! Replays a chat's log: which message stands where in the end, and which record has its last version.
//!
//! The log is read twice. The first time only ids and numbers of records are noted, the second time the messages are
//! told. One whose turn has not come is held back; where too much would be, the log is read once more.

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

/// What is read of all that is said about a chat as a whole.
const STATED: [&str; 5] = ["sessionId", "summary", "projectHash", "kind", "directories"];

/// Records are counted from 1; all of a list that one line brings count.
type Number = NonZeroU32;

/// The chat as it stands after the last line.
#[derive(Debug)]
pub(super) struct Plan {
    /// What is said about the chat as a whole.
    pub(super) header: Object,
    /// All messages were replaced by a shorter account, once for each, without those of these ids.
    seams: Vec<Vec<Short>>,
    /// What follows, in the order in which it was told first.
    slots: Vec<Slot>,
    /// What was told since the last seam; some of it may have been rewound.
    known: SumMap<Known>,
    /// Where before it the last version of each answer stands that tells its tokens.
    counted: SumMap<Number>,
    sums: Sums,
    next: Number,
}

#[derive(Debug)]
struct Slot {
    /// The record that was told first, and the one with the last version.
    first: Number,
    last: Number,
}

#[derive(Debug)]
struct Known {
    first: Number,
    /// The last version that tells its tokens.
    counted: Option<Number>,
}

/// What one line of the log does.
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
    /// Reads the log for the first time.
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
            seams: Vec::new(),
            slots: Vec::new(),
            known: SumMap::default(),
            counted: SumMap::default(),
            sums: Sums::default(),
            next: Number::MIN,
        }
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Rewind(target) => {
                let target = self.known.get(self.sums.short(target.as_str()));
                match target.and_then(|target| position(&self.slots, target.first)) {
                    Some(at) => self.slots.truncate(at),
                    None => (self.slots, self.seams) = (Vec::new(), Vec::new()),
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
        fields::text(object, "id").map(|id| self.sums.short(id))
    }

    /// Takes the record `first`, whose last version is `last`.
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

    /// Begins anew with a list of messages. A chat that is resumed forgets all that was said and then states it again,
    /// which is no compaction, and without tokens: the answers stay as they were told first.
    fn replace(&mut self, messages: &[Value]) {
        let objects = messages.iter().filter_map(Value::as_object);
        let stated: HashSet<_> = objects.filter_map(|object| self.id(object)).collect();
        let mut lost = Vec::new();
        for (id, known) in std::mem::take(&mut self.known).iter() {
            if position(&self.slots, known.first).is_some() {
                lost.push(id);
            }
            if let Some(number) = known.counted
                && let Some(counted) = self.counted.put(id, number)
            {
                *counted = number;
            }
        }
        self.slots.clear();
        self.seams.push(lost);
        self.seams.iter_mut().for_each(|lost| lost.retain(|id| !stated.contains(id)));
        self.seams.retain(|lost| !lost.is_empty());
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

    /// Reads the log again and tells of its messages in their order.
    pub(super) fn replay<'a>(
        self,
        source: &Source,
        telling: &mut Telling<'a>,
        mut tell: impl FnMut(&mut Telling<'a>, Object),
    ) -> Result<(), FileError> {
        for _ in self.seams {
            telling.entry(Entry::new(Role::System, Kind::Compaction, ""));
        }
        drop((self.known, self.counted));
        let mut window = Window::of(self.slots.into_iter().map(|slot| slot.last).collect());
        let mut is_first = true;
        while is_first || window.has_moved() {
            let mut numbers = 1..;
            each_record(source, |object, line| {
                let records = match object {
                    Ok(object) => records_of(object),
                    Err(problem) if is_first => return telling.problem(problem),
                    Err(_) => return,
                };
                for (record, number) in records.into_iter().zip(&mut numbers) {
                    match record {
                        Value::Object(record) => {
                            window.pass(number, record, &mut |record| tell(telling, record))
                        }
                        _ if is_first => {
                            let reason = EntryError::NotAnObject;
                            telling.problem(Problem::at(source.path(), line, reason));
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

/// Which slot begins with this record; none if it was taken away.
fn position(slots: &[Slot], first: Number) -> Option<usize> {
    slots.binary_search_by_key(&first, |slot| slot.first).ok()
}

/// The records that a line brings, in the order of their places.
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

/// Whether a file holds a log, whatever it is called. Of a single line only the name tells.
fn is_log(source: &Source) -> Result<bool, FileError> {
    let shown = Head::of(source)?.is_lines();
    Ok(shown.unwrap_or_else(|| !source.name().ends_with(".json")))
}

/// Gives each line of a log to `take`; of a document first what it says as a whole, then each message.
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
