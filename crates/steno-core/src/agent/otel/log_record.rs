//! Records of OTLP logs: the events that agents report, in file order.

use std::io::{self, BufRead};

use super::outline::within;
use super::span::{attribute_fields, moment};
use crate::agent::fields::{plain, string};
use crate::agent::walk::{LineWalks, Walk, begins_with_whole_line};
use crate::durable::FileError;
use crate::format::{Emit, Item};
use crate::json::{Object, Value};
use crate::problem::Problem;
use crate::timestamp::Timestamp;
use steno_vault::Source;

/// Prefixes of event names, of agents and of the GenAI conventions.
pub(super) const PREFIXES: [&str; 5] =
    ["gemini_cli.", "qwen-code.", "claude_code.", "codex.", "gen_ai."];

/// Attributes with the session id of an event, in order of preference.
const SESSION_NAMES: [&str; 3] = ["session.id", "conversation.id", "gen_ai.conversation.id"];

/// One event of an agent.
pub(super) struct LogRecord {
    /// The full event name, such as `gemini_cli.user_prompt`.
    pub(super) event: String,
    pub(super) session: String,
    pub(super) at: Option<Timestamp>,
    pub(super) body: String,
    pub(super) attributes: Object,
}

impl LogRecord {
    /// Parses a record. `None` if it is not an event of an agent.
    fn new(record: &Value) -> Option<Self> {
        let attributes = attribute_fields(&record["attributes"]);
        let body = record["body"].get("stringValue").map(plain).unwrap_or_default();
        let names = [attributes.get("event.name").and_then(string), string(&record["eventName"])];
        // Claude Code puts the prefix only into the body.
        let names = names.into_iter().flatten().chain([body.clone()]);
        let event = names.into_iter().find(|name| is_known(name))?;
        let session = SESSION_NAMES.iter().find_map(|name| attributes.get(*name).and_then(string));
        let session = session.or_else(|| string(&record["traceId"])).unwrap_or_default();
        let at = moment(&record["timeUnixNano"]).or(moment(&record["observedTimeUnixNano"]));
        Some(Self { event, session, at, body, attributes })
    }

    /// The program that reports the event, such as `gemini_cli`.
    pub(super) fn program(&self) -> &str {
        self.event.split_once('.').map_or("", |(program, _)| program)
    }

    /// The event without its program, such as `user_prompt`.
    pub(super) fn kind(&self) -> &str {
        self.event.split_once('.').map_or(&self.event, |(_, kind)| kind)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.attributes.get(name)?.as_str()
    }

    /// The first of these attributes with a number, also if written as text.
    pub(super) fn count(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| plain(self.attributes.get(*name)?).parse().ok())
    }
}

fn is_known(event: &str) -> bool {
    PREFIXES.iter().any(|prefix| event.starts_with(prefix))
}

/// Passes each event of a file to `take`, in file order. Errors are emitted as problems.
pub(super) fn each_record(
    source: &Source,
    emit: Emit<'_>,
    take: &mut dyn FnMut(LogRecord),
) -> Result<(), FileError> {
    let mut bad = Vec::new();
    if !begins_with_whole_line(source)? {
        let passed = Walk::over(source, &mut |walk| note_all(walk, &mut bad, take))?;
        let bad = bad.iter().map(|why: &String| Problem::of(source.path(), why));
        bad.chain(passed.err()).for_each(|problem| emit(Item::Problem(problem)));
        return Ok(());
    }
    let mut lines = LineWalks::of(source)?;
    while let Some(line) = lines.next(|walk| note_all(walk, &mut bad, take))? {
        let bad = bad.drain(..).map(|why| Problem::at(source.path(), lines.number, why));
        bad.chain(line.err()).for_each(|problem| emit(Item::Problem(problem)));
    }
    Ok(())
}

fn note_all<R: BufRead>(
    walk: &mut Walk<R>,
    bad: &mut Vec<String>,
    take: &mut dyn FnMut(LogRecord),
) -> io::Result<()> {
    let mut note = |walk: &mut Walk<R>| {
        match walk.value::<Value>()? {
            Ok(record) => LogRecord::new(&record).into_iter().for_each(&mut *take),
            Err(reason) => bad.push(format!("record: {reason}")),
        }
        Ok(())
    };
    within(walk, "resourceLogs", &mut |walk| {
        within(walk, "scopeLogs", &mut |walk| within(walk, "logRecords", &mut note))
    })
}
