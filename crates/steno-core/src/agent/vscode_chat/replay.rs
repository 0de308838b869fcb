//! Replays a log of changes to a chat: finds the remaining requests and the lines of each.
//!
//! The log is read twice. The first pass notes byte ranges only. The second pass holds one request at a time.

mod request;

use std::io::{self, Read};
use std::ops::Range;

use self::request::{Request, Run};
use super::mutation::{self, NO_LIST, NOWHERE, UNKNOWN};
use super::{LISTED, STATED};
use crate::agent::json_lines::{self, JsonLines};
use crate::agent::repair;
use crate::agent::walk::{LineWalks, OneLine, Parts, Walk, judged, malformed};
use crate::durable::FileError;
use crate::entry::EntryError;
use crate::format::{Emit, Item};
use crate::json::{Object, Value};
use crate::lines::LINE_LIMIT;
use crate::problem::Problem;
use steno_vault::Source;

/// The chat after all changes.
pub(super) struct Replay<'s> {
    source: &'s Source,
    /// Its fields except the requests.
    pub(super) stated: Object,
    requests: Requests,
}

enum Requests {
    None,
    List(Vec<Request>),
    /// The field has a value that is not a list.
    Other,
}

/// A line of the log.
#[derive(Default)]
struct Change {
    kind: Option<u64>,
    path: Vec<Value>,
    /// Byte range of its value.
    value: Option<Range<u64>>,
    length: Option<u64>,
}

impl Change {
    fn of(walk: &mut Walk<&mut OneLine>) -> io::Result<Self> {
        let mut change = Self::default();
        if walk.peek()? != Some(b'{') {
            return Err(malformed(EntryError::NotAnObject.to_string()));
        }
        walk.fields(&mut |walk, name| {
            match name {
                "kind" => change.kind = walk.value::<Value>()?.map_err(malformed)?.as_u64(),
                "i" => change.length = walk.value::<Value>()?.map_err(malformed)?.as_u64(),
                "k" => {
                    change.path = match walk.value()?.map_err(malformed)? {
                        Value::Array(path) => path,
                        _ => Vec::new(),
                    }
                }
                "v" => change.value = Some(walk.place()?),
                _ => walk.pass()?,
            }
            Ok(())
        })?;
        Ok(change)
    }
}

impl<'s> Replay<'s> {
    /// First pass: notes all changes. A change that cannot be applied becomes a problem.
    pub(super) fn of(source: &'s Source, emit: Emit<'_>) -> Result<Self, FileError> {
        let mut replay = Self { source, stated: Object::new(), requests: Requests::None };
        let mut lines = LineWalks::of(source)?;
        while let Some(change) = lines.next(Change::of)? {
            let run = Run { place: lines.place.clone(), line: lines.number };
            let applied = match change {
                Ok(change) => replay
                    .apply(&change, run)?
                    .map_err(|reason| Problem::at(source.path(), lines.number, reason)),
                Err(problem) => Err(problem),
            };
            applied.err().into_iter().for_each(|problem| emit(Item::Problem(problem)));
        }
        Ok(replay)
    }

    /// Notes a change. The inner error says why it cannot be applied. Changes to unused fields are ignored.
    fn apply(&mut self, change: &Change, run: Run) -> Result<Result<(), String>, FileError> {
        let fits = match (change.kind, change.path.as_slice()) {
            (Some(0), _) => return self.begin(change.value.as_ref()),
            (Some(1..=3), [Value::String(field), inner @ ..]) if field == LISTED => match inner {
                [] => return self.change_list(change),
                [index, inner @ ..] => self.change_request(change, (index, inner), run),
            },
            (Some(1..=3), [Value::String(field), ..]) if STATED.contains(&field.as_str()) => {
                return self.change_stated(&run);
            }
            (Some(1..=3), [Value::String(_), ..]) => Ok(()),
            (Some(1..=3), _) => Err(NOWHERE),
            _ => Err(UNKNOWN),
        };
        Ok(fits.map_err(str::to_owned))
    }

    /// Starts again with a whole document.
    fn begin(&mut self, value: Option<&Range<u64>>) -> Result<Result<(), String>, FileError> {
        let (mut stated, mut requests) = (Object::new(), Requests::None);
        let range = value.cloned().unwrap_or_default();
        let passed = self.walk(&range, |walk| {
            if walk.peek()? != Some(b'{') {
                return Err(malformed("the initial state is not an object".to_owned()));
            }
            walk.fields(&mut |walk, name| {
                match name {
                    LISTED => requests = Requests::of(walk)?,
                    _ if STATED.contains(&name) => {
                        stated.insert(name.to_owned(), walk.value()?.map_err(malformed)?);
                    }
                    _ => walk.pass()?,
                }
                Ok(())
            })
        })?;
        Ok(passed.map(|()| (self.stated, self.requests) = (stated, requests)))
    }

    fn change_list(&mut self, change: &Change) -> Result<Result<(), String>, FileError> {
        let mut new_list = Requests::Other;
        if let Some(range) = &change.value {
            let passed = self.walk(range, |walk| {
                new_list = Requests::of(walk)?;
                Ok(())
            })?;
            if passed.is_err() {
                return Ok(passed);
            }
        }
        match (change.kind, &mut self.requests) {
            (Some(1), requests) => *requests = new_list,
            (Some(3), requests) => *requests = Requests::None,
            (_, Requests::Other) => return Ok(Err(NO_LIST.to_owned())),
            (_, requests) => requests.append(change.length, new_list),
        }
        Ok(Ok(()))
    }

    fn change_request(
        &mut self,
        change: &Change,
        (index, inner): (&Value, &[Value]),
        run: Run,
    ) -> Result<(), &'static str> {
        let Requests::List(requests) = &mut self.requests else { return Err(NOWHERE) };
        let index = index.as_u64().and_then(|index| usize::try_from(index).ok()).ok_or(NOWHERE)?;
        let count = requests.len();
        match (change.kind, inner) {
            (Some(1), []) if index <= count => {
                let request = Request::at(&change.value.clone().unwrap_or_default());
                requests.splice(index..count.min(index + 1), [request]);
            }
            (Some(3), []) if index < count => drop(requests.remove(index)),
            _ => requests.get_mut(index).ok_or(NOWHERE)?.change(run),
        }
        Ok(())
    }

    fn change_stated(&mut self, run: &Run) -> Result<Result<(), String>, FileError> {
        if run.place.end - run.place.start > LINE_LIMIT as u64 {
            return Ok(Err("line too long to be a record".to_owned()));
        }
        let bytes = Parts::of(self.source).read(&run.place)?;
        let mut stated = Value::Object(std::mem::take(&mut self.stated));
        let applied = json_lines::object(&bytes)
            .and_then(|change| mutation::apply(&mut stated, change, 0).map_err(str::to_owned));
        if let Value::Object(stated) = stated {
            self.stated = stated;
        }
        Ok(applied)
    }

    /// Walks over the value at `place`. The inner error says why it is malformed.
    fn walk(
        &self,
        range: &Range<u64>,
        step: impl FnOnce(&mut Walk<Part>) -> io::Result<()>,
    ) -> Result<Result<(), String>, FileError> {
        let input = self.source.open_at(range.start)?.take(range.end - range.start);
        let passed = step(&mut Walk::new(input, range.start));
        let passed = judged(passed, self.source.path())?;
        Ok(passed.map_err(|problem| problem.reason))
    }

    /// Second pass: passes each request to `take`, and the problems of its changes.
    pub(super) fn each(
        self,
        mut take: impl FnMut(Result<Value, Problem>),
    ) -> Result<(), FileError> {
        let Requests::List(requests) = &self.requests else { return Ok(()) };
        let mut parts = Parts::of(self.source);
        let bad = |reason: &str| Problem::of(self.source.path(), format!("request: {reason}"));
        for Request { start, length, changes } in requests {
            let range = *start..*start + u64::from(*length);
            let request = match *length as usize > LINE_LIMIT {
                true => Err(TOO_LONG.to_owned()),
                false => repair::parse::<Value>(&parts.read(&range)?),
            };
            match request {
                Err(reason) => take(Err(bad(&reason))),
                Ok(mut request) => {
                    let mut problem = |problem| take(Err(problem));
                    let changes = changes.iter().flat_map(|changes| changes.runs());
                    if !self.change(&mut request, changes, &mut problem)? {
                        problem(bad(TOO_LONG));
                    }
                    take(Ok(request));
                }
            }
        }
        Ok(())
    }

    /// Applies all changes of a request. Returns false if the request grew too long, and then leaves out the rest.
    fn change(
        &self,
        request: &mut Value,
        changes: impl Iterator<Item = Run>,
        problem: &mut dyn FnMut(Problem),
    ) -> Result<bool, FileError> {
        let (mut added, mut fits) = (0, true);
        for run in changes {
            let input = self.source.open_at(run.place.start)?;
            let input = input.take(run.place.end - run.place.start);
            JsonLines::new(self.source.path(), Box::new(input)).each(|number, line| {
                let number = run.line + number - 1;
                let at = |reason: String| Problem::at(self.source.path(), number, reason);
                added += line.as_ref().map_or(0, |line| line.len());
                if added > LINE_LIMIT {
                    // The request may have been replaced instead of extended.
                    (added, fits) = (0, fits && request.to_string().len() <= LINE_LIMIT);
                }
                if !fits {
                    return;
                }
                let applied = line
                    .map_err(|problem| Problem { line: Some(number), ..problem })
                    .and_then(|line| json_lines::object(line).map_err(at))
                    .and_then(|change| {
                        mutation::apply(request, change, 2).map_err(|why| at(why.to_owned()))
                    });
                applied.err().into_iter().for_each(&mut *problem);
            });
        }
        Ok(fits)
    }
}

/// Why a request or its last changes are left out.
const TOO_LONG: &str = "too long, the last changes are left out";

type Part = io::Take<Box<dyn io::BufRead>>;

impl Requests {
    /// Scans the list at the current position.
    fn of(walk: &mut Walk<Part>) -> io::Result<Self> {
        if walk.peek()? != Some(b'[') {
            return walk.pass().map(|()| Self::Other);
        }
        let mut requests = Vec::new();
        walk.items(&mut |walk| {
            requests.push(Request::at(&walk.place()?));
            Ok(())
        })?;
        Ok(Self::List(requests))
    }

    /// Truncates the list to `length`, then appends to it.
    fn append(&mut self, length: Option<u64>, more: Self) {
        let mut requests = match std::mem::replace(self, Self::None) {
            Self::List(requests) => requests,
            _ => Vec::new(),
        };
        if let Some(length) = length {
            requests.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        }
        if let Self::List(more) = more {
            requests.extend(more);
        }
        *self = Self::List(requests);
    }
}
