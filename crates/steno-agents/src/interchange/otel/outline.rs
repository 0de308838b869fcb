//! Byte range, start time and session of each span in a file. The spans themselves stay in the file.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};
use std::num::NonZeroU32;
use std::ops::Range;

use indexmap::IndexSet;

use super::marks::{SpanMark, SpanMarkList};
use super::span::OtelSpan;
use crate::decoding::json_repair;
use crate::decoding::json_walker::{
    JsonLineWalker, JsonWalker, RangeReader, malformed_error, starts_with_whole_line,
};
use crate::reader::{ItemSink, ReaderItem};
use steno_model::durable::{FileError, OnPath};
use steno_model::json::Value;
use steno_model::name_hash::{CompactNameSet, NameHasher, ShortNameHash};
use steno_model::problem::Problem;
use steno_model::timestamp::Timestamp;
use steno_vault::SessionFile;

/// The spans of one file, or of several rotated ones.
#[derive(Default)]
pub(super) struct SpanOutline<'s> {
    sources: Vec<&'s SessionFile>,
    pub(super) marks: SpanMarkList,
    /// Mark indices of the selected session, in order of their start.
    pub(super) spans_by_start: Vec<u32>,
    /// Spans of the files scanned before.
    known: CompactNameSet,
    /// Names of traces and conversations, each stored once.
    names: IndexSet<String>,
    /// The first conversation that each trace names.
    conversations: HashMap<u32, NonZeroU32>,
    sums: NameHasher,
    /// Errors of the last line or document.
    record_errors: Vec<String>,
}

impl<'s> SpanOutline<'s> {
    /// Scans all `sources`. A span that an earlier one of them has is skipped. Problems are emitted for the first one
    /// only, because the others were read before.
    pub(super) fn read(
        sources: impl IntoIterator<Item = &'s SessionFile>,
        emit: ItemSink<'_>,
    ) -> Result<Self, FileError> {
        let mut outline = Self::default();
        for source in sources {
            let is_first = outline.sources.is_empty();
            outline.marks.iter().for_each(|mark| _ = outline.known.insert(mark.unique_key()));
            outline.sources.push(source);
            outline.scan_file(source, &mut |item| {
                if is_first {
                    emit(item);
                }
            })?;
        }
        Ok(outline)
    }

    /// Notes all spans of a file, in file order.
    fn scan_file(&mut self, source: &SessionFile, emit: ItemSink<'_>) -> Result<(), FileError> {
        let mut before = self.marks.len();
        if !starts_with_whole_line(source)? {
            let passed = JsonWalker::walk_document(source, &mut |walk| self.scan_document(walk))?;
            let bad = std::mem::take(&mut self.record_errors);
            if passed.is_ok() {
                bad.iter().for_each(|why| {
                    emit(ReaderItem::Problem(Problem::for_file(source.path(), why)))
                });
                return Ok(());
            }
            self.marks.truncate(before);
        }
        let mut lines = JsonLineWalker::open(source)?;
        while let Some(line) = lines.walk_next(|walk| self.scan_document(walk))? {
            let at = |why: String| Problem::at_line(source.path(), lines.number, why);
            let bad = self.record_errors.drain(..).map(at);
            match line {
                Ok(()) => bad.for_each(|problem| emit(ReaderItem::Problem(problem))),
                Err(problem) => {
                    self.marks.truncate(before);
                    emit(ReaderItem::Problem(problem));
                }
            }
            before = self.marks.len();
        }
        Ok(())
    }

    /// Notes the spans of the document at the current position.
    fn scan_document<R: BufRead>(&mut self, walk: &mut JsonWalker<R>) -> io::Result<()> {
        let mut note = |walk: &mut JsonWalker<R>| {
            let start = walk.next_start()?;
            match walk.read_value::<Value>()? {
                Ok(span) => self.note_span(&OtelSpan::from_json(&span), start..walk.position()),
                Err(reason) => self.record_errors.push(format!("span: {reason}")),
            }
            Ok(())
        };
        for_each_listed(walk, "resourceSpans", &mut |walk| {
            for_each_listed(walk, "scopeSpans", &mut |walk| {
                for_each_listed(walk, "spans", &mut note)
            })
        })
    }

    fn note_span(&mut self, span: &OtelSpan, range: Range<u64>) {
        let trace = self.intern_name(&span.trace).get();
        let conversation = span.text("gen_ai.conversation.id");
        let conversation = conversation.map(|conversation| self.intern_name(&conversation));
        if let Some(conversation) = conversation {
            self.conversations.entry(trace).or_insert(conversation);
        }
        let nanos = |start: Timestamp| i64::try_from(start.instant().as_nanosecond());
        let mark = SpanMark {
            offset: range.start,
            start_nanos: span.start.map_or(0, |start| nanos(start).unwrap_or(i64::MAX)),
            id: self.id_hash(&span.id),
            parent: self.id_hash(&span.parent),
            length: (range.end - range.start) as u32,
            trace,
            conversation,
            source: (self.sources.len() - 1) as u16,
            is_genai: span.is_genai(),
            invokes: span.invoked_agent().is_some(),
        };
        // A span without an id cannot be a parent.
        let is_needed = mark.is_genai || !span.id.is_empty();
        if is_needed && !self.known.contains(mark.unique_key()) {
            self.marks.push(mark);
        }
    }

    fn intern_name(&mut self, name: &str) -> NonZeroU32 {
        let known = self.names.get_index_of(name);
        let number = known.unwrap_or_else(|| self.names.insert_full(name.to_owned()).0);
        NonZeroU32::MIN.saturating_add(number as u32)
    }

    /// The short hash of a span id.
    pub(super) fn id_hash(&self, id: &str) -> ShortNameHash {
        self.sums.hash_short(id)
    }

    fn session_of(&self, mark: &SpanMark) -> u32 {
        let of_trace = || self.conversations.get(&mark.trace).copied();
        mark.conversation.or_else(of_trace).map_or(mark.trace, NonZeroU32::get)
    }

    /// The sessions with GenAI spans, in file order.
    pub(super) fn session_ids(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let marks = self.marks.iter().filter(|mark| mark.is_genai);
        let new = marks.map(|mark| self.session_of(mark)).filter(|session| seen.insert(*session));
        new.map(|session| self.names[session as usize - 1].clone()).collect()
    }

    /// Selects the spans of one session.
    pub(super) fn select_session(&mut self, session: &str) {
        let session = self.names.get_index_of(session).map(|number| number as u32 + 1);
        let is_chosen = |mark: &SpanMark| Some(self.session_of(mark)) == session;
        let mut begun =
            Vec::with_capacity(self.marks.iter().filter(|mark| is_chosen(mark)).count());
        begun.extend(
            (0..).zip(self.marks.iter()).filter(|(_, mark)| is_chosen(mark)).map(|it| it.0),
        );
        // Spans with the same start time stay in file order.
        begun.sort_unstable_by_key(|index| {
            let mark = self.marks.at(*index);
            (mark.start_nanos, mark.source, mark.offset)
        });
        self.spans_by_start = begun;
    }

    /// Reads each selected span that has GenAI attributes.
    pub(super) fn for_each_span(
        &self,
        mut take: impl FnMut(&OtelSpan) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let mut parts: Vec<_> =
            self.sources.iter().map(|source| RangeReader::new(source)).collect();
        let marks = self.spans_by_start.iter().map(|index| self.marks.at(*index));
        for mark in marks.filter(|mark| mark.is_genai) {
            take(&self.read_span(mark, &mut parts[usize::from(mark.source)])?)?;
        }
        Ok(())
    }

    /// Reads the span of a mark, outside of a sequential scan.
    pub(super) fn read_single_span(&self, mark: &SpanMark) -> Result<OtelSpan, FileError> {
        self.read_span(mark, &mut RangeReader::new(self.sources[usize::from(mark.source)]))
    }

    fn read_span(
        &self,
        mark: &SpanMark,
        parts: &mut RangeReader<'_>,
    ) -> Result<OtelSpan, FileError> {
        let bytes = parts.read(&mark.byte_range())?;
        let span = json_repair::parse_lenient::<Value>(&bytes).map_err(malformed_error);
        let path = self.sources[usize::from(mark.source)].path();
        span.on("read", path).map(|span| OtelSpan::from_json(&span))
    }
}

/// Passes each item of the list in field `field` to `step`.
pub(super) fn for_each_listed<R: BufRead>(
    walk: &mut JsonWalker<R>,
    field: &str,
    step: &mut dyn FnMut(&mut JsonWalker<R>) -> io::Result<()>,
) -> io::Result<()> {
    walk.for_each_field(&mut |walk, name| match name == field {
        true => walk.for_each_item(step),
        false => walk.skip_value(),
    })
}
