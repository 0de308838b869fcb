//! OpenTelemetry: spans of the GenAI conventions as OTLP JSON, one document or one to a line.
//!
//! A session is a conversation (`gen_ai.conversation.id`) or, where none is named, a trace. Each
//! request repeats the conversation so far: only what is new in it becomes entries. Spans come as
//! they ended and are read as they began.

mod conversation;
mod message;
mod span;

use std::collections::{HashMap, HashSet};

use serde::de::IgnoredAny;

use self::conversation::Conversation;
use self::span::Span;
use super::document;
use super::json_lines::JsonLines;
use super::output::Output;
use super::repair;
use crate::durable::FileError;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Item, Reader};
use crate::lines::Line;
use crate::problem::Problem;
use crate::session::{Session, SessionId};
use crate::source::{Bundle, Source};

/// The agent's name.
pub const AGENT: &str = "otel";

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let mut bundles = Vec::new();
    let files = document::find(tree, |head| {
        head.field("resourceSpans").is_some_and(|spans| spans.contains("\"gen_ai."))
    })?;
    for bundle in files {
        let Ok(spans) = spans_of(&bundle.sources[0], &mut |_| {}) else {
            // Reading it says why it cannot be.
            bundles.push(bundle);
            continue;
        };
        let sessions = sessions(&spans);
        let has_several = sessions.len() > 1;
        bundles.extend(
            sessions
                .into_iter()
                .map(|session| Bundle { key: has_several.then_some(session), ..bundle.clone() }),
        );
    }
    Ok(bundles)
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let source = document::only_source(bundle)?;
    let mut spans = spans_of(source, emit)?;
    for earlier in bundle.earlier.iter().rev() {
        // A file that was rotated goes on where the one before it ends.
        add_missing(&mut spans, spans_of(earlier, &mut |_| {})?);
    }
    let invalid = || FormatError::Invalid(Problem::of(source.path(), "no spans of a model in it"));
    let native_id = bundle.key.clone().or_else(|| sessions(&spans).into_iter().next());
    let native_id = native_id.ok_or_else(invalid)?;
    let names = session_names(&spans);
    spans.retain(|span| span.session(&names) == native_id);
    spans.sort_by_key(Span::order);
    let mut session = Session::new(SessionId::for_native(AGENT, &native_id), AGENT);
    let mut output = Output::new(AGENT, &native_id, emit);
    session.native_id = Some(native_id);
    let mut conversation = Conversation::new(&spans, &mut output);
    for span in spans.iter().filter(|span| span.is_genai()) {
        conversation.span(span);
    }
    Ok(session)
}

/// Adds the spans that are not there yet.
fn add_missing(spans: &mut Vec<Span>, mut earlier: Vec<Span>) {
    let name = |span: &Span| (span.trace.clone(), span.id.clone());
    let there: HashSet<_> = spans.iter().map(name).collect();
    earlier.retain(|span| !there.contains(&name(span)));
    spans.append(&mut earlier);
}

/// All spans of a file, in its order.
fn spans_of(source: &Source, emit: Emit<'_>) -> Result<Vec<Span>, FileError> {
    if !begins_with_whole_line(source)?
        && let Ok(document) = repair::parse(&source.bytes()?)
    {
        return Ok(span::all(&document));
    }
    let mut spans = Vec::new();
    for line in JsonLines::of(source)? {
        let document = line.and_then(|line| {
            repair::parse(&line.bytes)
                .map_err(|reason| Problem::at(source.path(), line.number, reason))
        });
        match document {
            Ok(document) => spans.extend(span::all(&document)),
            Err(problem) => emit(Item::Problem(problem)),
        }
    }
    Ok(spans)
}

/// Whether the first line is a document of its own; a file of such lines may be of any size.
fn begins_with_whole_line(source: &Source) -> Result<bool, FileError> {
    let first = JsonLines::of(source)?.next();
    let is_whole = |line: Line| serde_json::from_slice::<IgnoredAny>(&line.bytes).is_ok();
    Ok(first.and_then(Result::ok).is_some_and(is_whole))
}

/// The conversation that each trace names first.
fn session_names(spans: &[Span]) -> HashMap<String, String> {
    let mut names = HashMap::new();
    for span in spans {
        if let Some(conversation) = span.text("gen_ai.conversation.id") {
            names.entry(span.trace.clone()).or_insert(conversation);
        }
    }
    names
}

/// The sessions in which a model took part, in the order of the file.
fn sessions(spans: &[Span]) -> Vec<String> {
    let names = session_names(spans);
    let mut seen = HashSet::new();
    let sessions = spans.iter().filter(|span| span.is_genai()).map(|span| span.session(&names));
    sessions.filter(|session| seen.insert(session.clone())).collect()
}

#[cfg(test)]
mod tests;
