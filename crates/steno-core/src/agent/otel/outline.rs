//! Byte range, start time and session of each span in a file. The spans themselves stay in the file.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};
use std::num::NonZeroU32;
use std::ops::Range;

use indexmap::IndexSet;

use super::super::repair;
use super::marks::{Mark, Marks};
use super::span::Span;
use crate::agent::walk::{LineWalks, Parts, Walk, begins_with_whole_line, malformed};
use crate::durable::{FileError, OnPath};
use crate::format::{Emit, Item};
use crate::json::Value;
use crate::problem::Problem;
use crate::sums::{Short, SumSet, Sums};
use crate::timestamp::Timestamp;
use steno_vault::Source;

/// The spans of one file, or of several rotated ones.
#[derive(Default)]
pub(super) struct Outline<'s> {
    sources: Vec<&'s Source>,
    pub(super) marks: Marks,
    /// Mark indices of the selected session, in order of their start.
    pub(super) begun: Vec<u32>,
    /// Spans of the files scanned before.
    known: SumSet,
    /// Names of traces and conversations, each stored once.
    names: IndexSet<String>,
    /// The first conversation that each trace names.
    conversations: HashMap<u32, NonZeroU32>,
    sums: Sums,
    /// Errors of the last line or document.
    bad: Vec<String>,
}

impl<'s> Outline<'s> {
    /// Scans all `sources`. A span that an earlier one of them has is skipped. Problems are emitted for the first one
    /// only, because the others were read before.
    pub(super) fn of(
        sources: impl IntoIterator<Item = &'s Source>,
        emit: Emit<'_>,
    ) -> Result<Self, FileError> {
        let mut outline = Self::default();
        for source in sources {
            let is_first = outline.sources.is_empty();
            outline.marks.iter().for_each(|mark| _ = outline.known.insert(mark.name()));
            outline.sources.push(source);
            outline.read(source, &mut |item| {
                if is_first {
                    emit(item);
                }
            })?;
        }
        Ok(outline)
    }

    /// Notes all spans of a file, in file order.
    fn read(&mut self, source: &Source, emit: Emit<'_>) -> Result<(), FileError> {
        let mut before = self.marks.len();
        if !begins_with_whole_line(source)? {
            let passed = Walk::over(source, &mut |walk| self.note_all(walk))?;
            let bad = std::mem::take(&mut self.bad);
            if passed.is_ok() {
                bad.iter().for_each(|why| emit(Item::Problem(Problem::of(source.path(), why))));
                return Ok(());
            }
            self.marks.truncate(before);
        }
        let mut lines = LineWalks::of(source)?;
        while let Some(line) = lines.next(|walk| self.note_all(walk))? {
            let at = |why: String| Problem::at(source.path(), lines.number, why);
            let bad = self.bad.drain(..).map(at);
            match line {
                Ok(()) => bad.for_each(|problem| emit(Item::Problem(problem))),
                Err(problem) => {
                    self.marks.truncate(before);
                    emit(Item::Problem(problem));
                }
            }
            before = self.marks.len();
        }
        Ok(())
    }

    /// Notes the spans of the document at the current position.
    fn note_all<R: BufRead>(&mut self, walk: &mut Walk<R>) -> io::Result<()> {
        let mut note = |walk: &mut Walk<R>| {
            let start = walk.start()?;
            match walk.value::<Value>()? {
                Ok(span) => self.note(&Span::new(&span), start..walk.position()),
                Err(reason) => self.bad.push(format!("span: {reason}")),
            }
            Ok(())
        };
        within(walk, "resourceSpans", &mut |walk| {
            within(walk, "scopeSpans", &mut |walk| within(walk, "spans", &mut note))
        })
    }

    fn note(&mut self, span: &Span, range: Range<u64>) {
        let trace = self.number(&span.trace).get();
        let conversation = span.text("gen_ai.conversation.id");
        let conversation = conversation.map(|conversation| self.number(&conversation));
        if let Some(conversation) = conversation {
            self.conversations.entry(trace).or_insert(conversation);
        }
        let nanos = |start: Timestamp| i64::try_from(start.instant().as_nanosecond());
        let mark = Mark {
            start: range.start,
            order: span.start.map_or(0, |start| nanos(start).unwrap_or(i64::MAX)),
            id: self.sum(&span.id),
            parent: self.sum(&span.parent),
            length: (range.end - range.start) as u32,
            trace,
            conversation,
            source: (self.sources.len() - 1) as u16,
            is_genai: span.is_genai(),
            invokes: span.agent().is_some(),
        };
        // A span without an id cannot be a parent.
        let is_needed = mark.is_genai || !span.id.is_empty();
        if is_needed && !self.known.contains(mark.name()) {
            self.marks.push(mark);
        }
    }

    fn number(&mut self, name: &str) -> NonZeroU32 {
        let known = self.names.get_index_of(name);
        let number = known.unwrap_or_else(|| self.names.insert_full(name.to_owned()).0);
        NonZeroU32::MIN.saturating_add(number as u32)
    }

    /// The short hash of a span id.
    pub(super) fn sum(&self, id: &str) -> Short {
        self.sums.short(id)
    }

    fn session_of(&self, mark: &Mark) -> u32 {
        let of_trace = || self.conversations.get(&mark.trace).copied();
        mark.conversation.or_else(of_trace).map_or(mark.trace, NonZeroU32::get)
    }

    /// The sessions with GenAI spans, in file order.
    pub(super) fn sessions(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let marks = self.marks.iter().filter(|mark| mark.is_genai);
        let new = marks.map(|mark| self.session_of(mark)).filter(|session| seen.insert(*session));
        new.map(|session| self.names[session as usize - 1].clone()).collect()
    }

    /// Selects the spans of one session.
    pub(super) fn choose(&mut self, session: &str) {
        let session = self.names.get_index_of(session).map(|number| number as u32 + 1);
        let is_chosen = |mark: &Mark| Some(self.session_of(mark)) == session;
        let mut begun =
            Vec::with_capacity(self.marks.iter().filter(|mark| is_chosen(mark)).count());
        begun.extend(
            (0..).zip(self.marks.iter()).filter(|(_, mark)| is_chosen(mark)).map(|it| it.0),
        );
        // Spans with the same start time stay in file order.
        begun.sort_unstable_by_key(|index| {
            let mark = self.marks.at(*index);
            (mark.order, mark.source, mark.start)
        });
        self.begun = begun;
    }

    /// Reads each selected span that has GenAI attributes.
    pub(super) fn each(
        &self,
        mut take: impl FnMut(&Span) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let mut parts: Vec<_> = self.sources.iter().map(|source| Parts::of(source)).collect();
        let marks = self.begun.iter().map(|index| self.marks.at(*index));
        for mark in marks.filter(|mark| mark.is_genai) {
            take(&self.read_span(mark, &mut parts[usize::from(mark.source)])?)?;
        }
        Ok(())
    }

    /// Reads the span of a mark, outside of a sequential scan.
    pub(super) fn span(&self, mark: &Mark) -> Result<Span, FileError> {
        self.read_span(mark, &mut Parts::of(self.sources[usize::from(mark.source)]))
    }

    fn read_span(&self, mark: &Mark, parts: &mut Parts<'_>) -> Result<Span, FileError> {
        let bytes = parts.read(&mark.place())?;
        let span = repair::parse::<Value>(&bytes).map_err(malformed);
        let path = self.sources[usize::from(mark.source)].path();
        span.on("read", path).map(|span| Span::new(&span))
    }
}

/// Passes each item of the list in field `field` to `step`.
pub(super) fn within<R: BufRead>(
    walk: &mut Walk<R>,
    field: &str,
    step: &mut dyn FnMut(&mut Walk<R>) -> io::Result<()>,
) -> io::Result<()> {
    walk.fields(&mut |walk, name| match name == field {
        true => walk.items(step),
        false => walk.pass(),
    })
}
