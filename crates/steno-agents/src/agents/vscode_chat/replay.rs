//! Replays a log of changes to a chat: finds the remaining requests and the lines of each.
//!
//! The log is read twice. The first pass notes byte ranges only. The second pass holds one request at a time.

mod request;

use std::io::{self, Read};
use std::ops::Range;

use self::request::{LineRun, RequestLocation};
use super::mutation::{self, NO_SUCH_PATH, NOT_A_LIST, UNKNOWN_KIND};
use super::{READ_FIELDS, REQUESTS_FIELD};
use crate::decoding::json_lines::{self, JsonLines};
use crate::decoding::json_repair;
use crate::decoding::json_walker::{
    JsonLineWalker, JsonWalker, RangeReader, SingleLineReader, malformed_error, split_problem,
};
use crate::reader::{ItemSink, ReaderItem};
use steno_model::durable::FileError;
use steno_model::entry::EntryError;
use steno_model::json::{Object, Value};
use steno_model::lines::MAX_LINE_LENGTH;
use steno_model::problem::Problem;
use steno_vault::SessionFile;

/// The chat after all changes.
pub(super) struct ChatLogReplay<'s> {
    source: &'s SessionFile,
    /// Its fields except the requests.
    pub(super) fields: Object,
    requests: ReplayedRequests,
}

enum ReplayedRequests {
    None,
    List(Vec<RequestLocation>),
    /// The field has a value that is not a list.
    Other,
}

/// A line of the log.
#[derive(Default)]
struct ChatLogChange {
    kind: Option<u64>,
    path: Vec<Value>,
    /// Byte range of its value.
    value: Option<Range<u64>>,
    length: Option<u64>,
}

impl ChatLogChange {
    fn read(walk: &mut JsonWalker<&mut SingleLineReader>) -> io::Result<Self> {
        let mut change = Self::default();
        if walk.peek()? != Some(b'{') {
            return Err(malformed_error(EntryError::NotAnObject.to_string()));
        }
        walk.for_each_field(&mut |walk, name| {
            match name {
                "kind" => {
                    change.kind = walk.read_value::<Value>()?.map_err(malformed_error)?.as_u64()
                }
                "i" => {
                    change.length = walk.read_value::<Value>()?.map_err(malformed_error)?.as_u64()
                }
                "k" => {
                    change.path = match walk.read_value()?.map_err(malformed_error)? {
                        Value::Array(path) => path,
                        _ => Vec::new(),
                    }
                }
                "v" => change.value = Some(walk.value_range()?),
                _ => walk.skip_value()?,
            }
            Ok(())
        })?;
        Ok(change)
    }
}

impl<'s> ChatLogReplay<'s> {
    /// First pass: notes all changes. A change that cannot be applied becomes a problem.
    pub(super) fn read_log(source: &'s SessionFile, emit: ItemSink<'_>) -> Result<Self, FileError> {
        let mut replay = Self { source, fields: Object::new(), requests: ReplayedRequests::None };
        let mut lines = JsonLineWalker::open(source)?;
        while let Some(change) = lines.walk_next(ChatLogChange::read)? {
            let run = LineRun { range: lines.range.clone(), line: lines.number };
            let applied = match change {
                Ok(change) => replay
                    .apply_change(&change, run)?
                    .map_err(|reason| Problem::at_line(source.path(), lines.number, reason)),
                Err(problem) => Err(problem),
            };
            applied.err().into_iter().for_each(|problem| emit(ReaderItem::Problem(problem)));
        }
        Ok(replay)
    }

    /// Notes a change. The inner error says why it cannot be applied. Changes to unused fields are ignored.
    fn apply_change(
        &mut self,
        change: &ChatLogChange,
        run: LineRun,
    ) -> Result<Result<(), String>, FileError> {
        let fits = match (change.kind, change.path.as_slice()) {
            (Some(0), _) => return self.begin_document(change.value.as_ref()),
            (Some(1..=3), [Value::String(field), inner @ ..]) if field == REQUESTS_FIELD => {
                match inner {
                    [] => return self.change_list(change),
                    [..] => self.change_request(change, inner, run),
                }
            }
            (Some(1..=3), [Value::String(field), ..]) if READ_FIELDS.contains(&field.as_str()) => {
                return self.change_field(&run);
            }
            (Some(1..=3), [Value::String(_), ..]) => Ok(()),
            (Some(1..=3), _) => Err(NO_SUCH_PATH),
            _ => Err(UNKNOWN_KIND),
        };
        Ok(fits.map_err(str::to_owned))
    }

    /// Starts again with a whole document.
    fn begin_document(
        &mut self,
        value: Option<&Range<u64>>,
    ) -> Result<Result<(), String>, FileError> {
        let (mut stated, mut requests) = (Object::new(), ReplayedRequests::None);
        let range = value.cloned().unwrap_or_default();
        let passed = self.walk_range(&range, |walk| {
            if walk.peek()? != Some(b'{') {
                return Err(malformed_error("the initial state is not an object".to_owned()));
            }
            walk.for_each_field(&mut |walk, name| {
                match name {
                    REQUESTS_FIELD => requests = ReplayedRequests::scan_list(walk)?,
                    _ if READ_FIELDS.contains(&name) => {
                        stated
                            .insert(name.to_owned(), walk.read_value()?.map_err(malformed_error)?);
                    }
                    _ => walk.skip_value()?,
                }
                Ok(())
            })
        })?;
        Ok(passed.map(|()| (self.fields, self.requests) = (stated, requests)))
    }

    fn change_list(&mut self, change: &ChatLogChange) -> Result<Result<(), String>, FileError> {
        let mut new_list = ReplayedRequests::Other;
        if let Some(range) = &change.value {
            let passed = self.walk_range(range, |walk| {
                new_list = ReplayedRequests::scan_list(walk)?;
                Ok(())
            })?;
            if passed.is_err() {
                return Ok(passed);
            }
        }
        match (change.kind, &mut self.requests) {
            (Some(1), requests) => *requests = new_list,
            (Some(3), requests) => *requests = ReplayedRequests::None,
            (_, ReplayedRequests::Other) => return Ok(Err(NOT_A_LIST.to_owned())),
            (_, requests) => requests.append_list(change.length, new_list),
        }
        Ok(Ok(()))
    }

    /// Applies a change to one request. The path starts with its index.
    fn change_request(
        &mut self,
        change: &ChatLogChange,
        path: &[Value],
        run: LineRun,
    ) -> Result<(), &'static str> {
        let ReplayedRequests::List(requests) = &mut self.requests else { return Err(NO_SUCH_PATH) };
        let [index, inner @ ..] = path else { return Err(NO_SUCH_PATH) };
        let index =
            index.as_u64().and_then(|index| usize::try_from(index).ok()).ok_or(NO_SUCH_PATH)?;
        let count = requests.len();
        match (change.kind, inner) {
            (Some(1), []) if index <= count => {
                let request =
                    RequestLocation::from_range(&change.value.clone().unwrap_or_default());
                requests.splice(index..count.min(index + 1), [request]);
            }
            (Some(3), []) if index < count => drop(requests.remove(index)),
            _ => requests.get_mut(index).ok_or(NO_SUCH_PATH)?.add_change(run),
        }
        Ok(())
    }

    fn change_field(&mut self, run: &LineRun) -> Result<Result<(), String>, FileError> {
        if run.range.end - run.range.start > MAX_LINE_LENGTH as u64 {
            return Ok(Err("line too long to be a record".to_owned()));
        }
        let bytes = RangeReader::new(self.source).read(&run.range)?;
        let mut stated = Value::Object(std::mem::take(&mut self.fields));
        let applied = json_lines::parse_object(&bytes).and_then(|change| {
            mutation::apply_mutation(&mut stated, change, 0).map_err(str::to_owned)
        });
        if let Value::Object(stated) = stated {
            self.fields = stated;
        }
        Ok(applied)
    }

    /// Walks over the value at `place`. The inner error says why it is malformed.
    fn walk_range(
        &self,
        range: &Range<u64>,
        step: impl FnOnce(&mut JsonWalker<ByteRangeReader>) -> io::Result<()>,
    ) -> Result<Result<(), String>, FileError> {
        let input = self.source.open_at(range.start)?.take(range.end - range.start);
        let passed = step(&mut JsonWalker::new(input, range.start));
        let passed = split_problem(passed, self.source.path())?;
        Ok(passed.map_err(|problem| problem.reason))
    }

    /// Second pass: passes each request to `take`, and the problems of its changes.
    pub(super) fn for_each_request(
        self,
        mut take: impl FnMut(Result<Value, Problem>),
    ) -> Result<(), FileError> {
        let ReplayedRequests::List(requests) = &self.requests else { return Ok(()) };
        let mut parts = RangeReader::new(self.source);
        let bad =
            |reason: &str| Problem::for_file(self.source.path(), format!("request: {reason}"));
        for RequestLocation { start, length, changes } in requests {
            let range = *start..*start + u64::from(*length);
            let request = match *length as usize > MAX_LINE_LENGTH {
                true => Err(TOO_LONG_REASON.to_owned()),
                false => json_repair::parse_lenient::<Value>(&parts.read(&range)?),
            };
            match request {
                Err(reason) => take(Err(bad(&reason))),
                Ok(mut request) => {
                    let mut problem = |problem| take(Err(problem));
                    let changes = changes.iter().flat_map(|changes| changes.runs());
                    if !self.apply_changes(&mut request, changes, &mut problem)? {
                        problem(bad(TOO_LONG_REASON));
                    }
                    take(Ok(request));
                }
            }
        }
        Ok(())
    }

    /// Applies all changes of a request. Returns false if the request grew too long, and then leaves out the rest.
    fn apply_changes(
        &self,
        request: &mut Value,
        changes: impl Iterator<Item = LineRun>,
        problem: &mut dyn FnMut(Problem),
    ) -> Result<bool, FileError> {
        let (mut added, mut fits) = (0, true);
        for run in changes {
            let input = self.source.open_at(run.range.start)?;
            let input = input.take(run.range.end - run.range.start);
            JsonLines::new(self.source.path(), Box::new(input)).for_each_line(|number, line| {
                let number = run.line + number - 1;
                let at = |reason: String| Problem::at_line(self.source.path(), number, reason);
                added += line.as_ref().map_or(0, |line| line.len());
                if added > MAX_LINE_LENGTH {
                    // The request may have been replaced instead of extended.
                    (added, fits) = (0, fits && request.to_string().len() <= MAX_LINE_LENGTH);
                }
                if !fits {
                    return;
                }
                let applied = line
                    .map_err(|problem| Problem { line: Some(number), ..problem })
                    .and_then(|line| json_lines::parse_object(line).map_err(at))
                    .and_then(|change| {
                        mutation::apply_mutation(request, change, 2)
                            .map_err(|why| at(why.to_owned()))
                    });
                applied.err().into_iter().for_each(&mut *problem);
            });
        }
        Ok(fits)
    }
}

/// Why a request or its last changes are left out.
const TOO_LONG_REASON: &str = "too long, the last changes are left out";

type ByteRangeReader = io::Take<Box<dyn io::BufRead>>;

impl ReplayedRequests {
    /// Scans the list at the current position.
    fn scan_list(walk: &mut JsonWalker<ByteRangeReader>) -> io::Result<Self> {
        if walk.peek()? != Some(b'[') {
            return walk.skip_value().map(|()| Self::Other);
        }
        let mut requests = Vec::new();
        walk.for_each_item(&mut |walk| {
            requests.push(RequestLocation::from_range(&walk.value_range()?));
            Ok(())
        })?;
        Ok(Self::List(requests))
    }

    /// Truncates the list to `length`, then appends to it.
    fn append_list(&mut self, length: Option<u64>, more: Self) {
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
