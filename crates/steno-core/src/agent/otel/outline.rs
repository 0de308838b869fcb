//! Where the spans of a file stand, when they began and which session each is of. None of them is held.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};
use std::num::NonZeroU32;
use std::ops::Range;

use super::super::repair;
use super::span::Span;
use crate::agent::walk::{LineWalks, Parts, Walk, begins_with_whole_line, malformed};
use crate::durable::{FileError, OnPath};
use crate::format::{Emit, Item};
use crate::json::Value;
use crate::problem::Problem;
use crate::source::Source;
use crate::sums::{Sum, Sums};
use crate::timestamp::Timestamp;

/// What is known of a span: little, since there may be millions. Names are known by their numbers.
pub(super) struct Mark {
    /// Where it stands.
    start: u64,
    length: u32,
    /// Which file that is.
    source: u16,
    is_genai: bool,
    /// When it began, in nanoseconds since the epoch.
    order: Option<i64>,
    pub(super) id: Sum,
    pub(super) parent: Sum,
    trace: u32,
    /// The conversation that it names itself.
    conversation: Option<NonZeroU32>,
    /// The agent that it invokes.
    pub(super) agent: Option<NonZeroU32>,
}

/// The spans of one file, or of several that follow one another.
#[derive(Default)]
pub(super) struct Outline<'s> {
    sources: Vec<&'s Source>,
    pub(super) marks: Vec<Mark>,
    /// Traces, conversations and agents, each held once.
    names: Vec<String>,
    numbers: HashMap<String, NonZeroU32>,
    /// The conversation that each trace names first.
    conversations: HashMap<u32, NonZeroU32>,
    pub(super) sums: Sums,
    /// What could not be read of the last line or document.
    bad: Vec<String>,
}

impl<'s> Outline<'s> {
    /// The spans of all `sources`, of later ones only those that are not in one before it. What cannot be read of the
    /// first is told; the others were read before.
    pub(super) fn of(
        sources: impl IntoIterator<Item = &'s Source>,
        emit: Emit<'_>,
    ) -> Result<Self, FileError> {
        let mut outline = Self::default();
        for source in sources {
            let is_first = outline.sources.is_empty();
            let before = outline.marks.len();
            outline.sources.push(source);
            outline.read(source, &mut |item| {
                if is_first {
                    emit(item);
                }
            })?;
            if !is_first {
                let mut added = outline.marks.split_off(before);
                let there: HashSet<_> = outline.marks.iter().map(Mark::name).collect();
                added.retain(|mark| !there.contains(&mark.name()));
                outline.marks.append(&mut added);
            }
        }
        Ok(outline)
    }

    /// Notes all spans of a file, in its order.
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

    /// Notes the spans of the document that comes next.
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

    fn note(&mut self, span: &Span, place: Range<u64>) {
        let trace = self.number(&span.trace).get();
        let conversation = span.text("gen_ai.conversation.id");
        let conversation = conversation.map(|conversation| self.number(&conversation));
        if let Some(conversation) = conversation {
            self.conversations.entry(trace).or_insert(conversation);
        }
        let agent = span.agent().map(|agent| self.number(&agent));
        let nanos = |start: Timestamp| i64::try_from(start.instant().as_nanosecond()).ok();
        self.marks.push(Mark {
            start: place.start,
            length: (place.end - place.start) as u32,
            source: (self.sources.len() - 1) as u16,
            is_genai: span.is_genai(),
            order: span.start.map(|start| nanos(start).unwrap_or(i64::MAX)),
            id: self.sums.of(span.id.as_str()),
            parent: self.sums.of(span.parent.as_str()),
            trace,
            conversation,
            agent,
        });
    }

    fn number(&mut self, name: &str) -> NonZeroU32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.names.push(name.to_owned());
        let number = NonZeroU32::MIN.saturating_add(self.names.len() as u32 - 1);
        self.numbers.insert(name.to_owned(), number);
        number
    }

    pub(super) fn name(&self, number: NonZeroU32) -> &str {
        &self.names[number.get() as usize - 1]
    }

    fn session_of(&self, mark: &Mark) -> u32 {
        let of_trace = || self.conversations.get(&mark.trace).copied();
        mark.conversation.or_else(of_trace).map_or(mark.trace, NonZeroU32::get)
    }

    /// The sessions in which a model took part, in the order of the file.
    pub(super) fn sessions(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let marks = self.marks.iter().filter(|mark| mark.is_genai);
        let new = marks.map(|mark| self.session_of(mark)).filter(|session| seen.insert(*session));
        new.map(|session| self.names[session as usize - 1].clone()).collect()
    }

    /// Only the spans of one session, in the order in which they began.
    pub(super) fn session(mut self, session: &str) -> Self {
        let session = self.numbers.get(session).map(|number| number.get());
        let mut marks = std::mem::take(&mut self.marks);
        marks.retain(|mark| Some(self.session_of(mark)) == session);
        // Those that began together stay in the order of the files; nothing is copied for it.
        marks.sort_unstable_by_key(|mark| (mark.order, mark.source, mark.start));
        Self { marks, ..self }
    }

    /// Reads each span that tells of a model, an agent or a tool.
    pub(super) fn each(&self, mut take: impl FnMut(&Span)) -> Result<(), FileError> {
        let mut parts: Vec<_> = self.sources.iter().map(|source| Parts::of(source)).collect();
        for mark in self.marks.iter().filter(|mark| mark.is_genai) {
            let source = usize::from(mark.source);
            let bytes = parts[source].read(&(mark.start..mark.start + u64::from(mark.length)))?;
            let span = repair::parse::<Value>(&bytes).map_err(malformed);
            take(&Span::new(&span.on("read", self.sources[source].path())?));
        }
        Ok(())
    }
}

impl Mark {
    fn name(&self) -> (u32, Sum) {
        (self.trace, self.id)
    }
}

/// Gives each item of the list in field `field` of what comes next to `step`.
fn within<R: BufRead>(
    walk: &mut Walk<R>,
    field: &str,
    step: &mut dyn FnMut(&mut Walk<R>) -> io::Result<()>,
) -> io::Result<()> {
    walk.fields(&mut |walk, name| match name == field {
        true => walk.items(step),
        false => walk.pass(),
    })
}
