//! Replays a chat's log: which message stands where in the end, and which line has its last version.
//!
//! The log is read twice. The first time only ids and places are kept, the second time a message is held no longer
//! than until all before it have come.

use std::collections::{HashMap, HashSet};

use crate::agent::fields;
use crate::agent::head::Head;
use crate::agent::json_lines::each_object;
use crate::agent::listing::Listing;
use crate::agent::telling::Telling;
use crate::durable::FileError;
use crate::entry::{Entry, EntryError, Kind, Role};
use crate::json::{Object, Value};
use crate::problem::Problem;
use crate::source::Source;
use crate::sums::{Sum, Sums};

/// Where a record stands: its line, and its number in the list that the line brings.
type Place = (u64, u32);

/// The chat as it stands after the last line.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// What is said about the chat as a whole.
    pub(super) header: Object,
    slots: Vec<Slot>,
    known: HashMap<Sum, u32>,
    /// Where the last version of each answer stands that tells its tokens.
    counted: HashMap<Sum, Place>,
    sums: Sums,
}

#[derive(Debug)]
enum Slot {
    Record {
        id: Option<Sum>,
        place: Place,
    },
    /// All messages were replaced by a shorter account, without those of these ids.
    #[expect(clippy::box_collection, reason = "records are many and seams few")]
    Seam(Box<HashSet<Sum>>),
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
        let mut plan = Self::default();
        each_record(source, |object, line| {
            if let Ok(object) = object {
                plan.apply(Step::of(object), line);
            }
        })?;
        Ok(plan)
    }

    fn apply(&mut self, step: Step, line: u64) {
        match step {
            Step::Rewind(target) => {
                let cut = self.known.get(&self.sums.of(target.as_str())).copied().unwrap_or(0);
                for slot in self.slots.drain(cut as usize..) {
                    if let Slot::Record { id: Some(id), .. } = slot {
                        self.known.remove(&id);
                    }
                }
            }
            Step::Put(object) => self.put(&object, (line, 0)),
            Step::Merge(mut fields) => {
                if let Some(Value::Array(messages)) = fields.shift_remove("messages") {
                    self.replace(&messages, line);
                }
                self.header.extend(fields);
            }
        }
    }

    fn id(&self, object: &Object) -> Option<Sum> {
        fields::text(object, "id").map(|id| self.sums.of(id))
    }

    fn put(&mut self, object: &Object, place: Place) {
        let id = self.id(object);
        if let Some(id) = id.filter(|_| fields::object(object, "tokens").is_some()) {
            self.counted.insert(id, place);
        }
        let at = id.and_then(|id| self.known.get(&id).copied());
        if let Some(id) = id {
            self.known.insert(id, at.unwrap_or(self.slots.len() as u32));
        }
        match at {
            Some(at) => self.slots[at as usize] = Slot::Record { id, place },
            None => self.slots.push(Slot::Record { id, place }),
        }
    }

    /// Begins anew with a list of messages. A chat that is resumed forgets all that was said and then states it again,
    /// which is no compaction, and without tokens: the answers stay as they were told first.
    fn replace(&mut self, messages: &[Value], line: u64) {
        let objects = || (0..).zip(messages).filter_map(|(at, it)| Some((at, it.as_object()?)));
        let stated: HashSet<_> = objects().filter_map(|(_, it)| self.id(it)).collect();
        let mut lost = HashSet::new();
        for slot in std::mem::take(&mut self.slots) {
            match slot {
                Slot::Seam(mut ids) => {
                    ids.retain(|id| !stated.contains(id));
                    self.slots.extend((!ids.is_empty()).then_some(Slot::Seam(ids)));
                }
                Slot::Record { id, .. } => {
                    lost.extend(id.filter(|id| !stated.contains(id)));
                }
            }
        }
        self.known.clear();
        if !lost.is_empty() {
            self.slots.push(Slot::Seam(Box::new(lost)));
        }
        for (at, object) in objects() {
            let told = self.id(object).and_then(|id| self.counted.get(&id).copied());
            let is_answer = fields::text(object, "type") != Some("user");
            self.put(object, told.filter(|_| is_answer).unwrap_or((line, at)));
        }
    }

    /// Reads the log for the second time and tells of its messages in their order.
    pub(super) fn replay<'a>(
        self,
        source: &Source,
        telling: &mut Telling<'a>,
        mut tell: impl FnMut(&mut Telling<'a>, Object),
    ) -> Result<(), FileError> {
        let Self { slots, .. } = self;
        let records = slots.iter().enumerate().filter_map(|(at, slot)| match slot {
            Slot::Record { place, .. } => Some((*place, at as u32)),
            Slot::Seam(_) => None,
        });
        let mut wanted: Vec<(Place, u32)> = records.collect();
        wanted.sort_unstable();
        let slot_of = |place: Place| {
            let found = wanted.binary_search_by_key(&place, |(place, _)| *place);
            found.ok().map(|found| wanted[found].1 as usize)
        };
        let mut waiting: HashMap<usize, Object> = HashMap::new();
        let mut slots = slots.iter().enumerate().peekable();
        each_record(source, |object, line| {
            let records = match object {
                Ok(object) => records_of(object),
                Err(problem) => return telling.problem(problem),
            };
            for (index, record) in (0..).zip(records) {
                match (record, slot_of((line, index))) {
                    (Value::Object(record), Some(at)) => _ = waiting.insert(at, record),
                    (Value::Object(_), None) => {}
                    _ => telling.problem(Problem::at(source.path(), line, EntryError::NotAnObject)),
                }
            }
            while let Some((at, slot)) = slots.peek() {
                match (slot, waiting.remove(at)) {
                    (Slot::Seam(_), _) => {
                        telling.entry(Entry::new(Role::System, Kind::Compaction, ""))
                    }
                    (_, Some(record)) => tell(telling, record),
                    (_, None) => break,
                }
                slots.next();
            }
        })
    }
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
