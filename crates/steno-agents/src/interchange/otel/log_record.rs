//! Records of OTLP logs: the events that agents report, in file order.

use std::io::{self, BufRead};

use super::outline::for_each_listed;
use super::span::{attribute_fields, parse_unix_nanos};
use crate::decoding::json_fields::{owned_text, plain_text};
use crate::decoding::json_walker::{JsonLineWalker, JsonWalker, starts_with_whole_line};
use crate::reader::{ItemSink, ReaderItem};
use steno_model::durable::FileError;
use steno_model::json::{Object, Value};
use steno_model::problem::Problem;
use steno_model::timestamp::Timestamp;
use steno_vault::SessionFile;

/// Prefixes of event names, of agents and of the GenAI conventions.
pub(super) const EVENT_PREFIXES: [&str; 5] =
    ["gemini_cli.", "qwen-code.", "claude_code.", "codex.", "gen_ai."];

/// Attributes with the session id of an event, in order of preference.
const SESSION_ATTRIBUTES: [&str; 3] = ["session.id", "conversation.id", "gen_ai.conversation.id"];

/// One event of an agent.
pub(super) struct OtlpLogRecord {
    /// The full event name, such as `gemini_cli.user_prompt`.
    pub(super) event: String,
    pub(super) session: String,
    pub(super) at: Option<Timestamp>,
    pub(super) body: String,
    pub(super) attributes: Object,
}

impl OtlpLogRecord {
    /// Parses a record. `None` if it is not an event of an agent.
    fn from_json(record: &Value) -> Option<Self> {
        let attributes = attribute_fields(&record["attributes"]);
        let body = record["body"].get("stringValue").map(plain_text).unwrap_or_default();
        let names =
            [attributes.get("event.name").and_then(owned_text), owned_text(&record["eventName"])];
        // Claude Code puts the prefix only into the body.
        let names = names.into_iter().flatten().chain([body.clone()]);
        let event = names.into_iter().find(|name| is_agent_event(name))?;
        let session =
            SESSION_ATTRIBUTES.iter().find_map(|name| attributes.get(*name).and_then(owned_text));
        let session = session.or_else(|| owned_text(&record["traceId"])).unwrap_or_default();
        let at = parse_unix_nanos(&record["timeUnixNano"])
            .or(parse_unix_nanos(&record["observedTimeUnixNano"]));
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
        names.iter().find_map(|name| plain_text(self.attributes.get(*name)?).parse().ok())
    }
}

fn is_agent_event(event: &str) -> bool {
    EVENT_PREFIXES.iter().any(|prefix| event.starts_with(prefix))
}

/// Passes each event of a file to `take`, in file order. Errors are emitted as problems.
pub(super) fn for_each_record(
    source: &SessionFile,
    emit: ItemSink<'_>,
    take: &mut dyn FnMut(OtlpLogRecord),
) -> Result<(), FileError> {
    let mut bad = Vec::new();
    if !starts_with_whole_line(source)? {
        let passed =
            JsonWalker::walk_document(source, &mut |walk| walk_records(walk, &mut bad, take))?;
        let bad = bad.iter().map(|why: &String| Problem::for_file(source.path(), why));
        bad.chain(passed.err()).for_each(|problem| emit(ReaderItem::Problem(problem)));
        return Ok(());
    }
    let mut lines = JsonLineWalker::open(source)?;
    while let Some(line) = lines.walk_next(|walk| walk_records(walk, &mut bad, take))? {
        let bad = bad.drain(..).map(|why| Problem::at_line(source.path(), lines.number, why));
        bad.chain(line.err()).for_each(|problem| emit(ReaderItem::Problem(problem)));
    }
    Ok(())
}

fn walk_records<R: BufRead>(
    walk: &mut JsonWalker<R>,
    bad: &mut Vec<String>,
    take: &mut dyn FnMut(OtlpLogRecord),
) -> io::Result<()> {
    let mut note = |walk: &mut JsonWalker<R>| {
        match walk.read_value::<Value>()? {
            Ok(record) => OtlpLogRecord::from_json(&record).into_iter().for_each(&mut *take),
            Err(reason) => bad.push(format!("record: {reason}")),
        }
        Ok(())
    };
    for_each_listed(walk, "resourceLogs", &mut |walk| {
        for_each_listed(walk, "scopeLogs", &mut |walk| {
            for_each_listed(walk, "logRecords", &mut note)
        })
    })
}
